#include <linear_ddp/launch/collectives.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/launch/mpi_check.hpp>

namespace ddp {
namespace {

template <class T>
void all_reduce(const World& world, std::span<T> values, MPI_Datatype type, MPI_Op operation) {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), narrow<int>(values.size(), "the number of values"), type,
                          operation, world.comm()),
            "reduce values over all ranks");
}

std::vector<std::int64_t> offsets_of(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> offsets(counts.size() + 1, 0);
  std::partial_sum(counts.begin(), counts.end(), offsets.begin() + 1);
  return offsets;
}

/// One broadcast a rank and a piece: counts beyond int, and no call above the size where Open MPI slows down.
template <class T>
void all_gather_pieces(const World& world, std::span<const T> own, std::span<T> all,
                       const std::vector<std::int64_t>& offsets, MPI_Datatype type) {
  constexpr std::int64_t piece = (4 << 20) / sizeof(T);
  std::copy(own.begin(), own.end(), all.begin() + offsets[static_cast<std::size_t>(world.rank())]);
  for (int root = 0; root < world.size(); ++root) {
    const std::int64_t end = offsets[static_cast<std::size_t>(root) + 1];
    for (std::int64_t at = offsets[static_cast<std::size_t>(root)]; at < end; at += piece) {
      const int count = static_cast<int>(std::min(piece, end - at));
      check_mpi(MPI_Bcast(all.data() + at, count, type, root, world.comm()), "gather values from all ranks");
    }
  }
}

}  // namespace

void all_reduce_sum(const World& world, std::span<std::int64_t> values) {
  all_reduce(world, values, MPI_INT64_T, MPI_SUM);
}
void all_reduce_sum(const World& world, std::span<double> values) { all_reduce(world, values, MPI_DOUBLE, MPI_SUM); }
void all_reduce_sum(const World& world, std::span<long double> values) {
  all_reduce(world, values, MPI_LONG_DOUBLE, MPI_SUM);
}
void all_reduce_min(const World& world, std::span<double> values) { all_reduce(world, values, MPI_DOUBLE, MPI_MIN); }
void all_reduce_max(const World& world, std::span<double> values) { all_reduce(world, values, MPI_DOUBLE, MPI_MAX); }

std::int64_t sum_of_ranks_before(const World& world, std::int64_t value) {
  std::int64_t sum = 0;
  check_mpi(MPI_Exscan(&value, &sum, 1, MPI_INT64_T, MPI_SUM, world.comm()), "add the values of the ranks before");
  return world.rank() == 0 ? 0 : sum;  // MPI leaves rank 0's result undefined
}

std::vector<std::int64_t> all_gather(const World& world, std::int64_t value) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(world.size()));
  check_mpi(MPI_Allgather(&value, 1, MPI_INT64_T, values.data(), 1, MPI_INT64_T, world.comm()),
            "gather a value from all ranks");
  return values;
}

std::vector<std::string> all_gather(const World& world, const std::string& text) {
  const auto offsets = offsets_of(all_gather(world, static_cast<std::int64_t>(text.size())));
  std::string joined(static_cast<std::size_t>(offsets.back()), '\0');
  all_gather_pieces<char>(world, text, joined, offsets, MPI_CHAR);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank + 1 < offsets.size(); ++rank) {
    texts.push_back(joined.substr(static_cast<std::size_t>(offsets[rank]),
                                  static_cast<std::size_t>(offsets[rank + 1] - offsets[rank])));
  }
  return texts;
}

std::vector<float> all_gather(const World& world, std::span<const float> values) {
  const auto offsets = offsets_of(all_gather(world, static_cast<std::int64_t>(values.size())));
  std::vector<float> all(static_cast<std::size_t>(offsets.back()));
  all_gather_pieces<float>(world, values, all, offsets, MPI_FLOAT);
  return all;
}

std::string broadcast(const World& world, const std::string& text, int root) {
  std::int64_t size = static_cast<std::int64_t>(text.size());
  check_mpi(MPI_Bcast(&size, 1, MPI_INT64_T, root, world.comm()), "broadcast the length of a text");
  std::string result = text;
  result.resize(static_cast<std::size_t>(size));
  check_mpi(MPI_Bcast(result.data(), narrow<int>(size, "the length of a text"), MPI_CHAR, root, world.comm()),
            "broadcast a text");
  return result;
}

}  // namespace ddp

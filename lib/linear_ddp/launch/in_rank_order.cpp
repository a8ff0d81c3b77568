#include <linear_ddp/launch/in_rank_order.hpp>

#include <linear_ddp/base/checked.hpp>
#include <linear_ddp/launch/mpi_check.hpp>

namespace ddp {
namespace {

constexpr int tag = 1;  // the world's communicator is private, and its other calls are collectives
constexpr const char* attempt = "bring the ranks' results to rank 0";

}  // namespace

void in_rank_order(const World& world, const std::function<std::optional<std::string>()>& next,
                   const std::function<void(std::string_view)>& take) {
  if (world.rank() == 0) {
    while (const auto own = next()) take(*own);
    std::string text;
    for (int rank = 1; rank < world.size();) {
      MPI_Status status;
      int bytes = 0;
      check_mpi(MPI_Probe(rank, tag, world.comm(), &status), attempt);
      check_mpi(MPI_Get_count(&status, MPI_CHAR, &bytes), attempt);
      text.resize(static_cast<std::size_t>(bytes));
      check_mpi(MPI_Recv(text.data(), bytes, MPI_CHAR, rank, tag, world.comm(), MPI_STATUS_IGNORE), attempt);
      if (text.empty())
        ++rank;
      else
        take(text);
    }
    return;
  }
  const auto send = [&](const std::string& text) {  // synchronous: what is small would be buffered without end
    const int bytes = narrow<int>(text.size(), "the bytes of a rank's result");
    check_mpi(MPI_Ssend(text.data(), bytes, MPI_CHAR, 0, tag, world.comm()), attempt);
  };
  while (const auto own = next()) {
    if (!own->empty()) send(*own);
  }
  send({});
}

}  // namespace ddp

#include "fake_nccl_collectives.hpp"

#include <algorithm>
#include <cstring>

#include "fakegpu.hpp"
#include "kernels/half.hpp"

namespace fakegpu {
namespace {

using Kind = Operation::Kind;

std::string text_of(ncclDataType_t type) {
  switch (type) {
    case ncclUint8:
      return "uint8";
    case ncclInt32:
      return "int32";
    case ncclInt64:
      return "int64";
    case ncclFloat16:
      return "float16";
    case ncclBfloat16:
      return "bfloat16";
    case ncclFloat32:
      return "float32";
    case ncclFloat64:
      return "float64";
    default:
      return "type " + std::to_string(type);
  }
}

std::string text_of(const Operation& operation) {
  static constexpr const char* kinds[] = {"joins",       "all-reduces", "reduce-scatters",
                                          "all-gathers", "broadcasts",  "finalizes"};
  static constexpr const char* reductions[] = {"sum", "product", "maximum", "minimum", "average"};
  std::string text = (operation.captured ? "captured " : "") + std::string(kinds[static_cast<int>(operation.kind)]);
  if (operation.kind == Kind::join || operation.kind == Kind::finalize) return text;
  text += " " + std::to_string(operation.count) + " " + text_of(operation.type);
  if (operation.kind == Kind::broadcast) return text + " of rank " + std::to_string(operation.root);
  if (operation.kind == Kind::all_gather) return text;
  return text + " (" + reductions[operation.reduction] + ")";
}

void compare_operations(Channel& channel) {
  const Operation& first = channel.slot(0).operation;
  for (int rank = 1; rank < channel.ranks(); ++rank) {
    const Operation& other = channel.slot(rank).operation;
    if (other == first) continue;
    throw Failure(ncclInvalidUsage, "the ranks call different collectives: rank 0 " + text_of(first) + ", rank " +
                                        std::to_string(rank) + " " + text_of(other));
  }
}

/// A number of 16 bits that computes as a float.
template <class Format>
class Half {
 public:
  Half() = default;
  explicit Half(float value) : bits_(Format::from_float(value)) {}
  explicit Half(int value) : Half(static_cast<float>(value)) {}
  operator float() const { return Format::to_float(bits_); }  // NOLINT(google-explicit-constructor): it is one

 private:
  std::uint16_t bits_ = 0;
};

template <class T>
T combine(T a, T b, ncclRedOp_t reduction) {
  switch (reduction) {
    case ncclProd:
      return static_cast<T>(a * b);
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
    default:
      return static_cast<T>(a + b);
  }
}

/// Combines the elements that begin `offset` bytes into each window.
template <class T>
void reduce_windows(const Channel& channel, ncclRedOp_t reduction, std::size_t offset, std::size_t count, T* result) {
  std::memcpy(result, channel.window(0) + offset, count * sizeof(T));
  for (int rank = 1; rank < channel.ranks(); ++rank) {
    const auto* values = reinterpret_cast<const T*>(channel.window(rank) + offset);
    for (std::size_t at = 0; at < count; ++at) result[at] = combine(result[at], values[at], reduction);
  }
  if (reduction != ncclAvg) return;
  for (std::size_t at = 0; at < count; ++at) result[at] = static_cast<T>(result[at] / static_cast<T>(channel.ranks()));
}

void reduce_windows(const Channel& channel, const Operation& operation, std::size_t offset, std::size_t count,
                    char* result) {
  const auto reduce = [&]<class T>(T) {
    reduce_windows(channel, operation.reduction, offset, count, reinterpret_cast<T*>(result));
  };
  switch (operation.type) {
    case ncclUint8:
      return reduce(std::uint8_t{});
    case ncclInt32:
      return reduce(std::int32_t{});
    case ncclInt64:
      return reduce(std::int64_t{});
    case ncclFloat16:
      return reduce(Half<ddp::kernels::Fp16>{});
    case ncclBfloat16:
      return reduce(Half<ddp::kernels::Bf16>{});
    case ncclFloat32:
      return reduce(float{});
    case ncclFloat64:
      return reduce(double{});
    default:
      die("a type of NCCL that is not modelled");
  }
}

}  // namespace

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

void run_operation(Channel& channel, const Operation& operation, const void* send, void* receive) {
  channel.own_slot().operation = operation;
  channel.meet();
  compare_operations(channel);
  const auto own = static_cast<std::size_t>(channel.rank()), ranks = static_cast<std::size_t>(channel.ranks());
  const std::size_t width = bytes_of(operation.type), total = operation.count * width;
  const bool scatter = operation.kind == Kind::reduce_scatter;
  const std::size_t chunk = Channel::window_bytes / (scatter ? ranks : 1) / width * width;
  const auto* from = static_cast<const char*>(send);
  auto* to = static_cast<char*>(receive);
  for (std::size_t done = 0; done < total; done += chunk) {
    const std::size_t bytes = std::min(chunk, total - done);
    if (scatter) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::memcpy(channel.own_window() + rank * chunk, from + rank * total + done, bytes);
      }
    } else if (operation.kind != Kind::broadcast || channel.rank() == operation.root) {
      std::memcpy(channel.own_window(), from + done, bytes);
    }
    channel.meet();
    if (operation.kind == Kind::all_gather) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::memcpy(to + rank * total + done, channel.window(static_cast<int>(rank)), bytes);
      }
    } else if (operation.kind == Kind::broadcast) {
      std::memcpy(to + done, channel.window(operation.root), bytes);
    } else {
      reduce_windows(channel, operation, scatter ? own * chunk : 0, bytes / width, to + done);
    }
    channel.meet();  // before the next chunk takes the windows
  }
  if (total == 0) channel.meet();  // before the next operation takes the slots
}

}  // namespace fakegpu

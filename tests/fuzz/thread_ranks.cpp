#include "fuzz/thread_ranks.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include <linear_ddp/launch/collectives.hpp>
#include "fuzz/input.hpp"

namespace ddp {
namespace fuzz {
namespace {

/// Where the ranks of a job wait for each other.
class Meeting {
 public:
  explicit Meeting(std::size_t size) : brought_(size) {}

  [[nodiscard]] int size() const { return static_cast<int>(brought_.size()); }
  [[nodiscard]] std::unique_lock<std::mutex> turn() { return std::unique_lock(mutex_); }

  /// What each rank brings, on every rank. `turn` is the caller's.
  std::vector<std::string> exchange(std::unique_lock<std::mutex>& turn, int rank, std::string_view operation,
                                    std::string own) {
    require(arrived_ == 0 || operation == operation_, "all ranks call the same collective");
    operation_ = operation;
    brought_[static_cast<std::size_t>(rank)] = std::move(own);
    if (++arrived_ == brought_.size()) {
      arrived_ = 0;
      ++number_;
      gathered_ = brought_;
      all_here_.notify_all();
    } else {
      const std::size_t own_number = number_;
      all_here_.wait(turn, [&] { return number_ != own_number || ended_; });
      require(number_ != own_number, "no rank ends while another waits for it");
    }
    return gathered_;
  }

  void leave() {
    ended_ = true;
    all_here_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::string_view operation_;
  std::vector<std::string> brought_, gathered_;
  std::size_t arrived_ = 0, number_ = 0;
  bool ended_ = false;
};

/// World's constructor and the collectives have no other way to it.
struct Place {
  Meeting* meeting = nullptr;
  std::unique_lock<std::mutex>* turn = nullptr;
  int rank = 0;
};
thread_local Place place;

std::vector<std::string> exchange(std::string_view operation, std::string own) {
  return place.meeting->exchange(*place.turn, place.rank, operation, std::move(own));
}

template <class T>
std::string bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

template <class T>
std::vector<T> values_of(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <class T, class Operation>
void reduce(std::string_view name, std::span<T> values, const Operation& operation) {
  const auto all = exchange(name, bytes_of<T>(values));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    require(all[rank].size() == values.size_bytes(), "all ranks bring as many values");
    const auto brought = values_of<T>(all[rank]);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = rank == 0 ? brought[i] : operation(values[i], brought[i]);
  }
}

}  // namespace

void on_ranks(int ranks, const std::function<void(const World&)>& work) {
  Meeting meeting(static_cast<std::size_t>(ranks));
  const auto run = [&](int rank) {
    auto turn = meeting.turn();
    place = {&meeting, &turn, rank};
    work(World());
    meeting.leave();
  };
  if (ranks == 1) return run(0);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  for (auto& thread : threads) thread.join();
}

}  // namespace fuzz

World::World() : rank_(fuzz::place.rank), size_(fuzz::place.meeting->size()), local_rank_(rank_), local_size_(size_) {}
World::~World() = default;
std::string World::prefix() const {
  return size_ == 1 ? "" : "rank " + std::to_string(rank_) + ": ";
}

void all_reduce_sum(const World&, std::span<std::int64_t> values) {
  fuzz::reduce("sum of whole numbers", values, std::plus<>{});
}
void all_reduce_sum(const World&, std::span<double> values) {
  fuzz::reduce("sum", values, std::plus<>{});
}
void all_reduce_sum(const World&, std::span<long double> values) {
  fuzz::reduce("long sum", values, std::plus<>{});
}
void all_reduce_min(const World&, std::span<double> values) {
  fuzz::reduce("minimum", values, [](double a, double b) { return std::min(a, b); });
}
void all_reduce_max(const World&, std::span<double> values) {
  fuzz::reduce("maximum", values, [](double a, double b) { return std::max(a, b); });
}

std::int64_t sum_of_ranks_before(const World& world, std::int64_t value) {
  std::int64_t sum = 0;
  const auto all = fuzz::exchange("sum of the ranks before", fuzz::bytes_of<std::int64_t>(std::span(&value, 1)));
  for (int rank = 0; rank < world.rank(); ++rank) {
    sum += fuzz::values_of<std::int64_t>(all[static_cast<std::size_t>(rank)]).at(0);
  }
  return sum;
}

std::vector<std::int64_t> all_gather(const World&, std::int64_t value) {
  std::vector<std::int64_t> values;
  for (const auto& own : fuzz::exchange("gather", fuzz::bytes_of<std::int64_t>(std::span(&value, 1)))) {
    values.push_back(fuzz::values_of<std::int64_t>(own).at(0));
  }
  return values;
}
std::vector<std::string> all_gather(const World&, const std::string& text) {
  return fuzz::exchange("gather texts", text);
}
std::vector<float> all_gather(const World&, std::span<const float> values) {
  std::string all;
  for (const auto& own : fuzz::exchange("gather floats", fuzz::bytes_of(values))) all += own;
  return fuzz::values_of<float>(all);
}

std::string broadcast(const World&, const std::string& text, int root) {
  return fuzz::exchange("broadcast", text)[static_cast<std::size_t>(root)];
}

}  // namespace ddp

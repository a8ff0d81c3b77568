#include <linear_ddp/data/labels.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/number.hpp>
#include <linear_ddp/launch/collectives.hpp>

namespace ddp {
namespace {

/// Float counts to here, and a class's index is one.
constexpr std::int64_t most_classes = 1 << 24;
/// So many rows, each a class of its own, are no classes.
constexpr std::int64_t most_single_rows = 10'000;

[[noreturn]] void refuse_classes(const TableShare& share, const std::string& found) {
  throw AgreedError(Status::wrong_use, fmt::format("{}: column {} has {}; is the target a number? --task regression",
                                                   share.path, excerpt(share.target_names.at(0)), found));
}

struct Label {
  std::string text;
  double value = 0;
};

/// Those of the rank's labels that a row has: others may have lost theirs to a gap.
std::string joined_labels(const TableShare& share) {
  std::vector<bool> used(share.labels.size());
  for (const double target : share.targets) {
    if (!std::isnan(target)) used[static_cast<std::size_t>(target)] = true;
  }
  std::string joined;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) joined += fmt::format("{}:{}", share.labels[i].size(), share.labels[i]);
  }
  return joined;
}

void append_labels(std::string_view joined, std::vector<Label>& labels) {
  while (!joined.empty()) {
    std::size_t bytes = 0;
    std::from_chars(joined.data(), joined.data() + joined.size(), bytes);
    joined.remove_prefix(joined.find(':') + 1);
    labels.push_back({std::string(joined.substr(0, bytes))});
    joined.remove_prefix(bytes);
  }
}

bool all_numbers(std::vector<Label>& labels) {
  return std::all_of(labels.begin(), labels.end(), [](Label& label) {
    const Number number = parse_number(label.text, '.');
    label.value = number.value;
    return number.fault == NumberFault::none;
  });
}

}  // namespace

std::optional<std::int64_t> LabelList::find(std::string_view text) const {
  const auto found = indices_.find(text);
  return found == indices_.end() ? std::nullopt : std::optional(found->second);
}

std::int64_t LabelList::index(std::string_view text) {
  if (const auto known = find(text)) return *known;
  const auto next = static_cast<std::int64_t>(texts_.size());
  texts_.emplace_back(text);
  indices_.emplace(text, next);
  return next;
}

std::string shortest_text(double value) {
  return fmt::format("{}", value + 0.0);  // -0 + 0 is 0
}

void label_numbers(TableShare& share) {
  LabelList labels;
  std::unordered_map<double, double> indices;
  for (double& target : share.targets) {
    if (std::isnan(target)) continue;
    const auto [known, is_new] = indices.try_emplace(target, 0);
    if (is_new) known->second = static_cast<double>(labels.index(shortest_text(target)));
    target = known->second;
  }
  share.labels = labels.take();
}

void unite_labels(const World& world, TableShare& share) {
  std::int64_t texts = static_cast<std::int64_t>(share.labels.size());
  all_reduce_sum(world, std::span(&texts, 1));
  // Before memory is asked for: each rank may bring all the classes.
  if (texts / world.size() > most_classes) refuse_classes(share, fmt::format("more than {} classes", most_classes));

  std::vector<Label> labels;
  for (const auto& joined : all_gather(world, joined_labels(share))) append_labels(joined, labels);
  const bool by_value = all_numbers(labels);
  const auto before = [by_value](const Label& a, const Label& b) {
    if (by_value && a.value != b.value) return a.value < b.value;
    return a.text < b.text;
  };
  const auto same = [by_value](const Label& a, const Label& b) {
    return by_value ? a.value == b.value : a.text == b.text;
  };
  std::sort(labels.begin(), labels.end(), before);
  labels.erase(std::unique(labels.begin(), labels.end(), same), labels.end());

  const auto classes = static_cast<std::int64_t>(labels.size());
  if (classes > most_classes) refuse_classes(share, fmt::format("{} classes, more than {}", classes, most_classes));
  if (classes > most_single_rows && classes == share.total_rows) {
    refuse_classes(share, fmt::format("{} rows, each a class of its own", classes));
  }

  std::vector<double> index_of(share.labels.size());
  for (std::size_t i = 0; i < index_of.size(); ++i) {
    const Label own{share.labels[i], by_value ? parse_number(share.labels[i], '.').value : 0};
    const auto above = std::upper_bound(labels.begin(), labels.end(), own, [&](const Label& a, const Label& b) {
      return by_value ? a.value < b.value : a.text < b.text;
    });
    index_of[i] = static_cast<double>(above - labels.begin() - 1);
  }
  for (double& target : share.targets) {
    if (!std::isnan(target)) target = index_of[static_cast<std::size_t>(target)];
  }
  share.labels.clear();
  for (Label& label : labels) share.labels.push_back(std::move(label.text));
}

}  // namespace ddp

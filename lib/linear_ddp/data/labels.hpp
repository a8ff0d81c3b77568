#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <linear_ddp/data/table.hpp>
#include <linear_ddp/launch/world.hpp>

namespace ddp {

/// The distinct texts of a target in the order in which they come.
class LabelList {
 public:
  [[nodiscard]] std::optional<std::int64_t> find(std::string_view text) const;
  /// The text's index; a new text gets the next one.
  std::int64_t index(std::string_view text);
  [[nodiscard]] std::vector<std::string> take() { return std::move(texts_); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> indices_;
};

/// The shortest text that reads back as the value: "3", "-1", "0.5". Zero has one text.
[[nodiscard]] std::string shortest_text(double value);

/// Turns targets that are numbers into labels, their shortest texts; a gap stays NaN.
void label_numbers(TableShare& share);

/// Collective. The classes of all ranks, on each: by value when all are numbers (different spellings of a number are
/// one class, under the text that sorts first), else by their bytes; those without a row are left out. Targets become
/// indices into them; a gap stays NaN. Throws AgreedError for so many classes that the target must be a number.
void unite_labels(const World& world, TableShare& share);

}  // namespace ddp

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddp {

/// The candidate with the fewest edits (Levenshtein) from `text`, for "did you mean"; empty when none is near: more
/// than a third of its letters would change.
[[nodiscard]] std::string nearest(std::string_view text, const std::vector<std::string>& candidates);

}  // namespace ddp

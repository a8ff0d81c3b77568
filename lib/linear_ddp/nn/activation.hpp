#pragma once

#include <optional>
#include <span>
#include <string_view>

#include <linear_ddp/device/operations.hpp>

namespace ddp {

/// "relu", "tanh", "gelu", "none".
[[nodiscard]] std::string_view name_of(Activation activation) noexcept;
/// Empty for another name.
[[nodiscard]] std::optional<Activation> activation_of(std::string_view name) noexcept;

/// Each value becomes its activation; on the host, in float64.
void activate(Activation activation, std::span<double> values) noexcept;

}  // namespace ddp

#pragma once

#include <cstddef>

#include <linear_ddp/comm/process_group.hpp>

namespace ddp {

/// result[i] = first[i] + second[i] (their minimum, maximum) for `numel` values of the type. `result` may be `first`;
/// otherwise the arrays are apart. Integers wrap around. As a minimum or maximum a NaN of `first` stays and one of
/// `second` is passed over. Numbers of 16 bits are only added up.
void combine(void* result, const void* first, const void* second, std::size_t numel, ElementType type,
             Reduction reduction);

}  // namespace ddp

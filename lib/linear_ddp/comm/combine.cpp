#include "linear_ddp/comm/combine.hpp"

#include <type_traits>

#include "kernels/half.hpp"
#include "kernels/multiversion.hpp"

namespace ddp {
namespace {

/// Inlined into each version of combine, or it would be compiled once, for the oldest machine.
template <class T, class Operation>
[[gnu::always_inline]] inline void apply(void* result, const void* first, const void* second, std::size_t numel,
                                         const Operation& operation) {
  T* out = static_cast<T*>(result);
  const T *x = static_cast<const T*>(first), *y = static_cast<const T*>(second);
#pragma omp simd
  for (std::size_t i = 0; i < numel; ++i) out[i] = operation(x[i], y[i]);
}

template <class Half>
[[gnu::always_inline]] inline void add_halves(void* result, const void* first, const void* second, std::size_t numel) {
  apply<std::uint16_t>(result, first, second, numel, [](std::uint16_t x, std::uint16_t y) {
    return Half::from_float(Half::to_float(x) + Half::to_float(y));
  });
}

template <class T>
[[gnu::always_inline]] inline void reduce(void* result, const void* first, const void* second, std::size_t numel,
                                          Reduction reduction) {
  // Signed overflow would be undefined.
  using Sum = std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  switch (reduction) {
    case Reduction::sum:
      return apply<Sum>(result, first, second, numel, [](Sum x, Sum y) { return static_cast<Sum>(x + y); });
    case Reduction::min:
      return apply<T>(result, first, second, numel, [](T x, T y) { return y < x ? y : x; });
    case Reduction::max:
      return apply<T>(result, first, second, numel, [](T x, T y) { return y > x ? y : x; });
  }
}

}  // namespace

DDP_MULTIVERSION void combine(void* result, const void* first, const void* second, std::size_t numel, ElementType type,
                              Reduction reduction) {
  switch (type) {
    case ElementType::u8:
      return reduce<std::uint8_t>(result, first, second, numel, reduction);
    case ElementType::i64:
      return reduce<std::int64_t>(result, first, second, numel, reduction);
    case ElementType::f16:
      return add_halves<kernels::Fp16>(result, first, second, numel);
    case ElementType::bf16:
      return add_halves<kernels::Bf16>(result, first, second, numel);
    case ElementType::f32:
      return reduce<float>(result, first, second, numel, reduction);
    case ElementType::f64:
      return reduce<double>(result, first, second, numel, reduction);
  }
}

}  // namespace ddp

#pragma once

#include <cmath>

#include "kernels/elementary.hpp"
#include "kernels/host_device.hpp"

// Activations between layers, y = f(z), of float or double. The gradient dy/dz is told from z or from y, as each kind
// says: what a layer keeps of its forward pass.
namespace ddp::kernels {

/// torch.nn.ReLU; a NaN stays one. From y.
struct Relu {
  template <class T>
  DDP_HOST_DEVICE T value(T z) const {
    return z < 0 ? T(0) : z;
  }
  template <class T>
  DDP_HOST_DEVICE T gradient(T y) const {
    return y > 0 ? T(1) : T(0);
  }
};

/// torch.nn.Tanh; dy/dz = 1 - y². From y.
struct Tanh {
  /// Within 2e-7, relative: by the exponential, and near 0, where that cancels, by the polynomial of tanhf in
  /// S. Moshier's Cephes Math Library, https://www.netlib.org/cephes/.
  DDP_HOST_DEVICE float value(float z) const {
    const float size = z < 0 ? -z : z, square = z * z;
    const float e = exp_of_nonpositive(-2.0F * size);
    const float large = (1.0F - e) / (1.0F + e);
    float p = -5.70498872745e-3F;
    p = p * square + 2.06390887954e-2F;
    p = p * square - 5.37397155531e-2F;
    p = p * square + 1.33314422036e-1F;
    p = p * square - 3.33332819422e-1F;
    const float small = p * square * z + z;
    return size < 0.625F ? small : z < 0 ? -large : large;
  }
  DDP_HOST_DEVICE double value(double z) const { return std::tanh(z); }
  template <class T>
  DDP_HOST_DEVICE T gradient(T y) const {
    return T(1) - y * y;
  }
};

/// torch.nn.GELU, the exact one: z Φ(z) with the normal distribution Φ; dy/dz = Φ(z) + z φ(z). From z.
struct Gelu {
  template <class T>
  DDP_HOST_DEVICE T value(T z) const {
    return z * distribution(z, density(z));
  }
  template <class T>
  DDP_HOST_DEVICE T gradient(T z) const {
    const T e = density(z);
    return distribution(z, e) + z * e * T(0.3989422804014327);
  }

 private:
  /// e^(-z²/2), which is √(2π) φ(z); 0 where a float is.
  template <class T>
  DDP_HOST_DEVICE static T density(T z) {
    const T exponent = T(-0.5) * z * z, e = exp_of_nonpositive(exponent);
    return exponent < T(-86) ? T(0) : e;
  }
  /// Within 2e-7, in the lower tail (z > -6) 6e-6 relative: Φ(-x) = e^(-x²/2)/2 · erfcx(x/√2), where erfcx is a
  /// polynomial in u = 1 / (1 + 0.55 x/√2), as in Abramowitz and Stegun 7.1.26, of degree 8 and fitted anew.
  DDP_HOST_DEVICE static float distribution(float z, float e) {
    const float u = 1.0F / (1.0F + 0.388908730F * (z < 0 ? -z : z));
    float p = -0.0645887405F;
    p = p * u + 0.350299418F;
    p = p * u - 0.700223982F;
    p = p * u + 0.507321417F;
    p = p * u - 0.0144041507F;
    p = p * u + 0.305932462F;
    p = p * u + 0.305103779F;
    p = p * u + 0.310559809F;
    const float tail = 0.5F * e * (p * u);
    return z < 0 ? tail : 1.0F - tail;
  }
  DDP_HOST_DEVICE static double distribution(double z, double) { return 0.5 * std::erfc(z * -0.7071067811865476); }
};

}  // namespace ddp::kernels

#pragma once
#include <braid/core/random.h>
#include <braid/core/scope.h>
#include <braid/core/tensor.h>

/// Initial values of parameters. Fans are those of a weight [out, in, ...]: fan_in = in * ..., fan_out = out * ...
namespace braid::nn::init {

/// N(0, std^2).
Tensor normal(const Shape& shape, double std, Rng& rng, DType dtype = DType::f32);
/// U(-bound, bound).
Tensor uniform(const Shape& shape, double bound, Rng& rng, DType dtype = DType::f32);

/// All the same.
Tensor constant(const Shape& shape, double value, DType dtype = DType::f32);

/// Keep the variance of activations and of gradients: std = gain * sqrt(2 / (fan_in + fan_out)). Throws ShapeError
/// unless the shape has two axes or more, and so has fans.
/// Glorot, Bengio: Understanding the difficulty of training deep feedforward neural networks, 2010.
Tensor xavier_normal(const Shape& shape, Rng& rng, DType dtype = DType::f32, double gain = 1);
/// The same variance, uniform. Throws as xavier_normal() does.
Tensor xavier_uniform(const Shape& shape, Rng& rng, DType dtype = DType::f32, double gain = 1);

/// Keep the variance of activations: std = gain / sqrt(fan_in); sqrt(2) suits relu. Throws as xavier_normal() does.
/// arXiv:1502.01852.
Tensor kaiming_normal(const Shape& shape, Rng& rng, DType dtype = DType::f32, double gain = 1.4142135623730951);
/// The same variance, uniform. Throws as xavier_normal() does.
Tensor kaiming_uniform(const Shape& shape, Rng& rng, DType dtype = DType::f32, double gain = 1.4142135623730951);

/// While one is alive, these functions return zeros that take no memory on this thread, and draw no numbers: for a
/// module whose parameters are about to be replaced.
class Placeholders : public Scope<Placeholders> {};

}  // namespace braid::nn::init

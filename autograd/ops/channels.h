#pragma once
#include <cstdint>

namespace braid {

/// Which axis of activations has the channels.
enum class Channels : std::uint8_t {
  last,   ///< [B, ..., C], as everywhere in braid
  first,  ///< [B, C, ...], as PyTorch has them for convolutions and group normalization
};

}  // namespace braid

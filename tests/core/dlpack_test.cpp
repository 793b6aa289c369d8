#include <braid/core/dlpack.h>

#include <dlpack/dlpack.h>
#include <gmock/gmock.h>

#include <array>
#include <utility>

#include <tests/support.h>

namespace braid::dlpack_test {
namespace {

using testing::ElementsAre;

TEST(DLPack, TellsWhatATensorIs) {
  const Tensor x = arange(24, DType::f64).reshape({2, 3, 4});
  const DLPack managed = to_dlpack(x);
  const DLTensor& t = managed->dl_tensor;
  EXPECT_EQ(t.data, x.bytes());
  EXPECT_EQ(t.byte_offset, 0U);
  EXPECT_EQ(t.device.device_type, kDLCPU);
  EXPECT_EQ(t.device.device_id, 0);
  EXPECT_THAT(std::vector(t.shape, t.shape + t.ndim), ElementsAre(2, 3, 4));
  EXPECT_THAT(std::vector(t.strides, t.strides + t.ndim), ElementsAre(12, 4, 1));
  const auto type = [](const Tensor& tensor) {
    const DLDataType dtype = to_dlpack(tensor)->dl_tensor.dtype;
    EXPECT_EQ(dtype.lanes, 1);
    return std::pair(int{dtype.code}, int{dtype.bits});
  };
  EXPECT_EQ(type(x), std::pair(int{kDLFloat}, 64));
  EXPECT_EQ(type(scalar(1)), std::pair(int{kDLFloat}, 32));
  EXPECT_EQ(type(arange(3, DType::i32)), std::pair(int{kDLInt}, 32));
  const Tensor narrow = arange(6, DType::bf16).reshape({2, 3}).transpose();
  EXPECT_EQ(type(narrow), std::pair(int{kDLBfloat}, 16));
  EXPECT_TRUE(identical(from_dlpack(to_dlpack(narrow)), narrow.contiguous()));
  EXPECT_EQ(to_dlpack(scalar(1))->dl_tensor.ndim, 0);
}

TEST(DLPack, HasTheStridesOfAView) {
  const Tensor x = arange(24).reshape({2, 3, 4}), view = x.transpose(0, 2).slice(0, 1, 3);
  const DLPack managed = to_dlpack(view);
  EXPECT_EQ(managed->dl_tensor.data, view.bytes());
  EXPECT_THAT(std::vector(managed->dl_tensor.shape, managed->dl_tensor.shape + 3), ElementsAre(2, 3, 2));
  EXPECT_THAT(std::vector(managed->dl_tensor.strides, managed->dl_tensor.strides + 3), ElementsAre(1, 4, 12));
  EXPECT_EQ(to_dlpack(scalar(1).broadcast_to({3}))->dl_tensor.strides[0], 0);  // no copy either
}

TEST(DLPack, CopiesAViewThatGoesBackward) {
  const DLPack managed = to_dlpack(arange(6).reshape({2, 3}).slice(1, 2, -4, -1));
  EXPECT_THAT(std::vector(managed->dl_tensor.strides, managed->dl_tensor.strides + 2), ElementsAre(3, 1));
  const auto* data = static_cast<const float*>(managed->dl_tensor.data);
  EXPECT_THAT(std::vector(data, data + 6), ElementsAre(2, 1, 0, 5, 4, 3));
}

TEST(DLPack, KeepsTheStorageUntilItIsDeleted) {
  const std::int64_t before = memory_stats().live_bytes;
  Tensor x = arange(5000);
  DLManagedTensor* const taken = to_dlpack(x.slice(0, 1000, 5000)).release();
  x = Tensor();
  EXPECT_GE(memory_stats().live_bytes, before + 20000);
  EXPECT_EQ(static_cast<const float*>(taken->dl_tensor.data)[3999], 4999);
  taken->deleter(taken);
  EXPECT_EQ(memory_stats().live_bytes, before);
}

TEST(DLPack, ComesBackAsItWas) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32}) {
    const Tensor x = arange(120, dtype).reshape({2, 3, 4, 5});
    for (const Tensor& t : {x, x.permute({3, 1, 0, 2}), x.slice(2, 1, 3), x.select(1, 2), x.slice(0, 1, 1),
                            x.select(0, 0).expand_dims(0).broadcast_to({7, 3, 4, 5}), scalar(3, dtype),
                            x.reshape({2, 1, 3, 1, 4, 1, 5, 1})})
      EXPECT_TRUE(identical(from_dlpack(to_dlpack(t)), t));
  }
}

/// A tensor of another library: one that counts how often it is deleted.
struct Foreign {
  int deleted = 0;
  std::array<std::int64_t, 4> values{1, 2, 3, -4};
  std::array<std::int64_t, 9> shape{2, 2, 1, 1, 1, 1, 1, 1, 1}, strides{-1, 2, 0, 0, 0, 0, 0, 0, 0};
  DLManagedTensor managed{};

  DLPack pack(std::uint8_t code, std::uint8_t bits) {
    managed.dl_tensor = {.data = values.data(),
                         .device = {.device_type = kDLCPU, .device_id = 0},
                         .ndim = 2,
                         .dtype = {code, bits, 1},
                         .shape = shape.data(),
                         .strides = nullptr,
                         .byte_offset = 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    return DLPack(&managed);
  }
};

TEST(DLPack, TakesLongIntegersAndAnyStrides) {
  Foreign foreign;
  EXPECT_THAT(from_dlpack(foreign.pack(kDLInt, 64)).to_vector<std::int32_t>(), ElementsAre(1, 2, 3, -4));
  EXPECT_EQ(foreign.deleted, 1);
  DLPack strided = foreign.pack(kDLInt, 64);
  strided->dl_tensor.strides = foreign.strides.data();
  strided->dl_tensor.byte_offset = 8;
  EXPECT_THAT(from_dlpack(std::move(strided)).to_vector<std::int32_t>(), ElementsAre(2, -4, 1, 3));
  DLPack without_deleter = foreign.pack(kDLInt, 64);
  without_deleter->deleter = nullptr;
  EXPECT_EQ(from_dlpack(std::move(without_deleter)).numel(), 4);
  EXPECT_EQ(foreign.deleted, 2);
}

TEST(DLPack, RefusesWhatATensorCannotBe) {
  Foreign foreign;
  const auto message = [&](std::uint8_t code, std::uint8_t bits, auto change) {
    DLPack managed = foreign.pack(code, bits);
    change(managed->dl_tensor);
    const int before = foreign.deleted;
    const std::string text = message_of([&] { from_dlpack(std::move(managed)); });
    EXPECT_EQ(foreign.deleted, before + 1);
    return text;
  };
  const auto none = [](DLTensor&) {};
  const std::string types = "from_dlpack: must be f32, f64, bf16, i32 or i64 but has ";
  EXPECT_EQ(message(kDLFloat, 16, none), types + "code 2, 16 bits and 1 lanes");
  EXPECT_EQ(message(kDLUInt, 32, none), types + "code 1, 32 bits and 1 lanes");
  EXPECT_EQ(message(kDLFloat, 32, [](DLTensor& t) { t.dtype.lanes = 4; }), types + "code 2, 32 bits and 4 lanes");
  EXPECT_EQ(message(kDLFloat, 32, [](DLTensor& t) { t.device.device_type = kDLCUDA; }),
            "from_dlpack: must be on the CPU (device 1) but is on device 2");
  EXPECT_EQ(message(kDLFloat, 32, [](DLTensor& t) { t.ndim = 9; }), "from_dlpack: must have 0 to 8 axes but has 9");
  foreign.shape[1] = -2;
  EXPECT_EQ(message(kDLFloat, 32, none), "from_dlpack: a size must not be negative but is -2");
  foreign.shape[1] = 2;
  foreign.values[2] = std::int64_t{1} << 31;
  EXPECT_EQ(message(kDLInt, 64, none), "from_dlpack: integers must fit 32 bits but one is 2147483648");
  EXPECT_EQ(message_of([] { from_dlpack(nullptr); }), "from_dlpack: the pointer is null");
  const auto refusal = [](auto damage) {
    DLPack whole = to_dlpack(ones({2, 3}));
    damage(whole->dl_tensor);
    return message_of([&] { from_dlpack(std::move(whole)); });
  };
  EXPECT_EQ(refusal([](DLTensor& t) { t.data = nullptr; }), "from_dlpack: its data is null but its shape [2, 3]");
  EXPECT_EQ(refusal([](DLTensor& t) { t.shape = nullptr; }), "from_dlpack: its shape is null but it has 2 axes");
  DLPack empty = to_dlpack(zeros({0, 3})), number = to_dlpack(scalar(2));
  empty->dl_tensor.data = nullptr;  // as others have them
  number->dl_tensor.shape = number->dl_tensor.strides = nullptr;
  EXPECT_EQ(from_dlpack(std::move(empty)).shape(), Shape({0, 3}));
  EXPECT_EQ(from_dlpack(std::move(number)).item(), 2);
  EXPECT_EQ(message_of([] { to_dlpack(Tensor()); }), "to_dlpack: the tensor is undefined");
}

}  // namespace
}  // namespace braid::dlpack_test

// Every error that a docstring of core names, but for those of the environment: see tests/throws.h.
#include <tests/throws.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#ifdef BRAID_HAS_DLPACK
#include <dlpack/dlpack.h>
#endif

#include <braid/core/bits.h>
#include <braid/core/dlpack.h>
#include <braid/core/files/atomic_file.h>
#include <braid/core/files/budget.h>
#include <braid/core/files/checksum.h>
#include <braid/core/files/file_system.h>
#include <braid/core/files/npy.h>
#include <braid/core/files/safetensors.h>
#include <braid/core/format.h>
#include <braid/core/map.h>
#include <braid/core/products/matmul.h>
#include <braid/core/products/matmul_precision.h>
#include <braid/core/random.h>
#include <braid/core/reduce.h>
#include <tests/support.h>

namespace braid::throws_test {
namespace {

namespace fs = std::filesystem;

const Tensor kX = ones({2, 3}), kDouble = ones({2, 3}, DType::f64), kInt = ones({2, 3}, DType::i32), kNone;
const Tensor kBf16 = ones({2}, DType::bf16), kRank8 = ones({1, 1, 1, 1, 1, 1, 1, 1});
constexpr int kLargest = std::numeric_limits<std::int32_t>::max();

TEST(CoreThrows, Shapes) {
  const Shape shape{2, 3}, eight = kRank8.shape();
  throws<ShapeError>("Shape::Shape", [] { Shape({-1}); });
  throws<ShapeError>("Shape::Shape", [] { Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}); });
  throws<ShapeError>("Shape::Shape", [] { Shape({std::int64_t{1} << 60}); });
  throws<ShapeError>("Shape::operator[]", [&] { shape[2]; });
  throws<ShapeError>("Shape::index", [&] { shape.index(-3); });
  throws<ShapeError>("Shape::with", [&] { shape.with(2, 1); });
  throws<ShapeError>("Shape::with", [&] { shape.with(0, -1); });
  throws<ShapeError>("Shape::inserted", [&] { shape.inserted(3, 1); });
  throws<ShapeError>("Shape::inserted", [&] { eight.inserted(0, 1); });
  throws<ShapeError>("Shape::without", [&] { shape.without(2); });
  throws<ShapeError>("Shape::axes", [&] { shape.axes(0, 3); });
  throws<ShapeError>("Shape::axes", [&] { shape.axes(-1, 1); });
  throws<ShapeError>("Shape::axes", [&] { shape.axes(1, 0); });
  throws<ShapeError>("Shape::concat", [&] { eight.concat(shape); });
  throws<ShapeError>("broadcast_shapes", [&] { broadcast_shapes("op", shape, {2, 2}); });
  throws<ShapeError>("check_shape", [] { check_shape(false, "op"); });
  throws<DTypeError>("check_dtype", [] { check_dtype(false, "op"); });
  throws<ValueError>("check_value", [] { check_value(false, "op"); });
}

TEST(CoreThrows, Tensors) {
  throws<std::bad_alloc>("Storage::Storage", [] { Storage(std::size_t{1} << 62); });
  throws<ShapeError>("Tensor::of", [] { Tensor::of<float>({2}, {1, 2, 3}); });
  throws<ShapeError>("Tensor::size", [] { kX.size(2); });
  throws<Error>("Tensor", [] { kNone.expand_dims(0); });
  throws<DTypeError>("Tensor::data", [] { kX.data<double>(); });
  throws<Error>("Tensor::data", [] { kNone.data<float>(); });
  throws<Error>("Tensor::bytes", [] { kNone.bytes(); });
  throws<DTypeError>("Tensor::mutable_data", [] { ones({2}).mutable_data<double>(); });
  throws<Error>("Tensor::mutable_data", [] { Tensor().mutable_data<float>(); });
  throws<Error>("Tensor::mutable_data", [] { Tensor(kX).mutable_data<float>(); });
  throws<Error>("Tensor::mutable_data", [] { ones({1}).broadcast_to({2}).mutable_data<float>(); });
  throws<Error>("Tensor::mutable_bytes", [] { Tensor(kX).mutable_bytes(); });
  throws<ShapeError>("Tensor::item", [] { kX.item(); });
  throws<ShapeError>("Tensor::item", [] { kNone.item(); });
  throws<ShapeError>("Tensor::at", [] { kX.at({0, 3}); });
  throws<ShapeError>("Tensor::at", [] { kX.at({0}); });
  throws<ValueError>("full", [] { full({2}, 0.5, DType::i32); });
  throws<ValueError>("scalar", [] { scalar(0.5, DType::i32); });
  throws<ValueError>("arange", [] { arange(-1); });
  throws<ValueError>("arange", [] { arange((1 << 24) + 2); });
  throws<ValueError>("arange", [] { arange((1 << 8) + 2, DType::bf16); });
  throws<ValueError>("eye", [] { eye(-1); });
  throws<DTypeError>("check_same_dtype", [] { check_same_dtype("op", kX, kDouble); });
  throws<DTypeError>("check_parameter_dtype", [] { check_parameter_dtype("op", kX, kDouble); });
  throws<DTypeError>("check_floating", [] { check_floating("op", DType::i32); });
  throws<DTypeError>("dispatch_float", [] { dispatch_float("op", DType::i32, [](auto) {}); });
  throws<DTypeError>("dispatch_float", [] { dispatch_float("op", DType::bf16, [](auto) {}); });
  throws<ValueError>("to_string", [] { to_string(kX, {.precision = 18}); });
  throws<ValueError>("to_string", [] { to_string(kX, {.edge_items = -1}); });
  throws<ValueError>("to_string", [] { to_string(kX, {.threshold = -1}); });
}

TEST(CoreThrows, Views) {
  throws<ShapeError>("Tensor::permute", [] { kX.permute({0}); });
  throws<ShapeError>("Tensor::permute", [] { kX.permute({0, 0}); });
  throws<ShapeError>("Tensor::transpose", [] { kX.transpose(0, 2); });
  throws<ShapeError>("Tensor::slice", [] { kX.slice(2, 0, 1); });
  throws<ShapeError>("Tensor::slice", [] { kX.slice(0, 0, 3); });
  throws<ValueError>("Tensor::slice", [] { kX.slice(0, 0, 1, 0); });
  throws<ShapeError>("Tensor::select", [] { kX.select(2, 0); });
  throws<ShapeError>("Tensor::select", [] { kX.select(0, 2); });
  throws<ShapeError>("Tensor::operator[]", [] { kX[2]; });
  throws<ShapeError>("Tensor::broadcast_to", [] { kX.broadcast_to({2, 4}); });
  throws<ShapeError>("Tensor::expand_dims", [] { kX.expand_dims(3); });
  throws<ShapeError>("Tensor::expand_dims", [] { kRank8.expand_dims(0); });
  throws<ShapeError>("Tensor::squeeze", [] { kX.squeeze(0); });
  throws<ShapeError>("Tensor::reshape", [] { kX.reshape({4, -1}); });
}

TEST(CoreThrows, Elements) {
  Rng rng;
  const auto f = [](auto a, auto b) { return a + b; };
  const MapKernel kernel{nullptr, [](void*, const std::byte* const*, std::byte*, std::int64_t) {}};
  const auto blocks = [&](const Tensor& a, const Tensor& b) {
    map_blocks("op", std::array{&a, &b}, DType::f32, kernel);
  };
  throws<ShapeError>("map_blocks", [&] { blocks(kX, ones({2, 2})); });
  throws<DTypeError>("map_blocks", [&] { blocks(kX, kDouble); });
  throws<Error>("map_blocks", [&] { blocks(kX, kNone); });
  throws<Error>("map_blocks", [&] { map_blocks("op", std::vector(9, &kX), DType::f32, kernel); });
  throws<ShapeError>("map", [&] { map("op", f, kX, ones({2, 2})); });
  throws<DTypeError>("map", [&] { map("op", f, kX, kDouble); });
  throws<DTypeError>("map", [&] { map("op", f, kInt, kInt); });
  throws<Error>("map", [&] { map("op", f, kX, kNone); });
  throws<ShapeError>("reduce_sum", [] { reduce_sum(kX, 2); });
  throws<ShapeError>("reduce_sum", [] { reduce_sum(kX, {0, -2}); });
  throws<ValueError>("reduce_sum", [] { reduce_sum(full({2}, kLargest, DType::i32)); });
  throws<DTypeError>("reduce_sum", [] { reduce_sum(kX, 0, false, "sum", DType::f64); });
  throws<ShapeError>("reduce_max", [] { reduce_max(zeros({2, 0})); });
  throws<ShapeError>("reduce_max", [] { reduce_max(kX, 2); });
  throws<ShapeError>("reduce_min", [] { reduce_min(zeros({2, 0})); });
  throws<ShapeError>("reduced_shape", [] { reduced_shape("op", {2}, {0, 0}, false); });
  throws<ShapeError>("sum_to", [] { sum_to(kX, {2}); });
  throws<ShapeError>("sum_to", [] { sum_to(kX, {2, 3, 1}); });
  throws<ValueError>("Rng::below", [&] { rng.below(0); });
  throws<DTypeError>("rand", [&] { rand({2}, rng, DType::bf16); });
  throws<DTypeError>("randn", [&] { randn({2}, rng, DType::i32); });
  throws<ValueError>("randint", [&] { randint(1, 1, {2}, rng); });
  throws<ValueError>("randint", [&] { randint(0, std::int64_t{1} << 32, {2}, rng); });
  throws<ValueError>("randperm", [&] { randperm(-1, rng); });
  throws<ValueError>("randperm", [&] { randperm((std::int64_t{1} << 31) + 1, rng); });
}

TEST(CoreThrows, Products) {
  Tensor sum = zeros({2, 2}), other;
  throws<ShapeError>("matrix_product", [] { matrix_product(kX, kX); });
  throws<ShapeError>("matrix_product", [] { matrix_product(kX, ones({3})); });
  throws<DTypeError>("matrix_product", [] { matrix_product(kX, kDouble.transpose()); });
  throws<ShapeError>("product_plus_row", [] { product_plus_row(kX, kX.transpose(), ones({3})); });
  throws<DTypeError>("product_plus_row", [] { product_plus_row(kX, kX.transpose(), ones({2}, DType::f64)); });
  throws<ShapeError>("accumulate_product", [&] { accumulate_product(kX, kX, sum); });
  throws<DTypeError>("accumulate_product", [&] { accumulate_product(kDouble, kDouble.transpose(), sum); });
  other = sum;
  throws<Error>("accumulate_product", [&] { accumulate_product(kX, kX.transpose(), sum); });
}

TEST(CoreThrows, Settings) {
  throws<ValueError>("name", [] { name(static_cast<Bits>(2)); });
  throws<ValueError>("name", [] { name(static_cast<InstructionSet>(9)); });
  throws<ValueError>("name", [] { name(static_cast<MatmulPrecision>(9)); });
  throws<ValueError>("matmul_precision", [] { matmul_precision("low"); });
  throws<ValueError>("set_instruction_set", [] { set_instruction_set(static_cast<InstructionSet>(9)); });
  throws<ValueError>("set_num_threads", [] { set_num_threads(0); });
  throws<ValueError>("set_num_threads", [] { set_num_threads(1025); });
  const WithThreads two(2);
  throws<Error>("set_num_threads", [] { parallel_for(2, 1, [](auto, auto) { set_num_threads(1); }); });
  throws<ValueError>("parallel_for", [] { parallel_for(1, 0, [](auto, auto) {}); });
  if (instruction_set() == InstructionSet::neon) return;  // which has fused multiply-add
  const WithInstructionSet scope(InstructionSet::baseline);
  throws<Error>("BitsScope", [] { BitsScope{Bits::portable}; });
}

#ifdef BRAID_HAS_DLPACK
/// What from_dlpack() gets when `change` has spoiled a tensor's description.
DLPack spoiled(void (*change)(DLTensor&)) {
  DLPack managed = to_dlpack(kX);
  change(managed->dl_tensor);
  return managed;
}

TEST(CoreThrows, DLPack) {
  const auto import = [](auto change) { from_dlpack(spoiled(change)); };
  throws<ValueError>("to_dlpack", [] { to_dlpack(kNone); });
  throws<DTypeError>("from_dlpack", [&] { import([](DLTensor& t) { t.dtype.bits = 16; }); });
  throws<ValueError>("from_dlpack", [&] { import([](DLTensor& t) { t.device.device_type = kDLCUDA; }); });
  throws<ValueError>("from_dlpack", [] { from_dlpack(nullptr); });
  throws<ValueError>("from_dlpack", [&] { import([](DLTensor& t) { t.shape = nullptr; }); });
  throws<ShapeError>("from_dlpack", [&] { import([](DLTensor& t) { t.ndim = 9; }); });
  throws<ShapeError>("from_dlpack", [&] { import([](DLTensor& t) { t.shape[0] = -1; }); });
}
#endif

/// A disk that cannot be read.
struct Unreadable : FileSystem {
  std::ptrdiff_t read_at(std::uint64_t, int, void*, std::size_t) override { return errno = EIO, -1; }
};

struct CoreFilesThrow : testing::Test {
  CoreFilesThrow() {
    fs::create_directories(folder);
    std::ofstream(text) << "text";
  }
  ~CoreFilesThrow() override { fs::remove_all(folder); }

  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const fs::path folder = fs::path(testing::TempDir()) / ("braid_core_throws_" + test);
  const fs::path text = folder / "text", gone = folder / "gone";
};

TEST_F(CoreFilesThrow, Bytes) {
  RegularFile file("file", text);
  char out[8];
  throws<UnreadableFile>("RegularFile::RegularFile", [&] { RegularFile("file", gone); });
  throws<UnreadableFile>("RegularFile::RegularFile", [&] { RegularFile("file", folder); });
  throws<FileError>("RegularFile::read", [&] { file.read(out, 8); });
  throws<FileError>("RegularFile::read_at", [&] { file.read_at(4, out, 1); });
  {
    Unreadable disk;
    const WithFileSystem scope(disk);
    throws<UnreadableFile>("RegularFile::read", [&] { file.read(out, 1); });
    throws<UnreadableFile>("RegularFile::read_at", [&] { file.read_at(0, out, 1); });
    throws<UnreadableFile>("RegularFile::contents", [&] { file.contents(); });
#ifdef BRAID_HAS_XXHASH
    throws<UnreadableFile>("checksum", [&] { checksum(file); });
#endif
  }
  fs::resize_file(text, 2);
  throws<FileError>("RegularFile::contents", [&] { file.contents(); });
  throws<FileError>("RegularFile::check_unchanged", [&] { file.check_unchanged(); });
#ifdef BRAID_HAS_XXHASH
  throws<FileError>("checksum", [&] { checksum(file); });
#endif
  const OutputFile output("file", text, OpenFor::syncing, "failed");
  throws<FileError>("OutputFile", [&] { OutputFile("file", folder / "gone/file", OpenFor::creating, "failed"); });
  throws<FileError>("OutputFile::require", [&] { output.require(false, "failed"); });
  throws<FileError>("write_file_atomically", [&] { write_file_atomically(folder, [](std::ostream&) {}); });
  throws<FileError>("remove_temporary_files", [&] { remove_temporary_files(gone); });
  throws<FileError>("check_nesting", [] { check_nesting("file", std::string(kMaxNesting + 1, '[')); });
}

TEST_F(CoreFilesThrow, Formats) {
  throws<UnreadableFile>("load_npy", [&] { load_npy(gone); });
  throws<FileError>("load_npy", [&] { load_npy(text); });
  throws<FileError>("save_npy", [&] { save_npy(gone / "x.npy", kX); });
  throws<ValueError>("save_npy", [&] { save_npy(gone, kNone); });
  throws<DTypeError>("save_npy", [&] { save_npy(gone, kBf16); });
#ifdef BRAID_HAS_ZIP
  throws<UnreadableFile>("load_npz", [&] { load_npz(gone); });
  throws<FileError>("load_npz", [&] { load_npz(text); });
  throws<FileError>("save_npz", [&] { save_npz(gone / "x.npz", {{"x", kX}}); });
  throws<ValueError>("save_npz", [&] { save_npz(gone, {{"x", kNone}}); });
  throws<ValueError>("save_npz", [&] { save_npz(gone, {{"", kX}}); });
  throws<ValueError>("save_npz", [&] { save_npz(gone, {{"\xff", kX}}); });
  throws<DTypeError>("save_npz", [&] { save_npz(gone, {{"x", kBf16}}); });
#endif
#ifdef BRAID_HAS_JSON
  throws<UnreadableFile>("load_safetensors", [&] { load_safetensors(gone); });
  throws<FileError>("load_safetensors", [&] { load_safetensors(text); });
  throws<FileError>("save_safetensors", [&] { save_safetensors(gone / "x.safetensors", {{"x", kX}}); });
  throws<ValueError>("save_safetensors", [&] { save_safetensors(gone, {{"x", kNone}}); });
  throws<ValueError>("save_safetensors", [&] { save_safetensors(gone, {{"\xff", kX}}); });
  throws<ValueError>("save_safetensors", [&] { save_safetensors(gone, {{"__metadata__", kX}}); });
#endif
}

}  // namespace
}  // namespace braid::throws_test

#include "../../../apps/train_lm/checkpoint.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/files/checksum.h>
#include <braid/core/files/file_system.h>
#include <braid/core/files/safetensors.h>
#include <braid/core/instruction_set.h>
#include <tests/support.h>

#include "../../../apps/common/json_lines.h"

namespace braid::train_lm {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// A tiny run that has saved step 1 and then step 2.
struct CheckpointFiles : testing::Test {
  CheckpointFiles() {
    fs::create_directories(folder);
    save();
    save();
  }
  ~CheckpointFiles() override { fs::remove_all(folder); }

  void save() {
    trainer.train_step();
    save_checkpoint(folder, trainer.state(), config, corpus);
  }
  std::int64_t saved_step() { return load_checkpoint(folder, trainer.state(), config, corpus)->step; }

  /// What loading says once `change` has been made to the metadata and the checksum is right again.
  void change(const std::function<void(std::map<std::string, std::string>&)>& metadata) const {
    SafetensorsFile file = load_safetensors(last);
    metadata(file.metadata);
    file.metadata.erase("checksum");
    file.metadata["checksum"] = checksum(file.tensors, file.metadata);
    save_safetensors(last, file.tensors, file.metadata);
  }
  std::string message_with(const std::function<void(std::map<std::string, std::string>&)>& metadata) {
    change(metadata);
    return message_of([&] { saved_step(); });
  }

  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const fs::path folder = fs::path(testing::TempDir()) / ("braid_checkpoint_" + test);
  const fs::path last = folder / "checkpoint.safetensors", previous = folder / "checkpoint.previous.safetensors";
  Config config = [] {
    Config c;
    c.training = {.layers = 1, .channels = 4, .heads = 1, .context = 4, .batch = 1, .steps = 9, .warmup = 0};
    return c;
  }();
  const apps::Corpus corpus{"abcacbabcabcacbabcabcacbabcabcacbabcabcacbabcabcacbabc", config.training.context};
  apps::Trainer trainer{config.training, corpus};
};

/// Lets opening or reading checkpoint.safetensors fail, or one of the renames; writes down what happens.
struct FaultyFileSystem : FileSystem {
  int open_error = 0, read_error = 0, failing_rename = -1;
  int renames = 0;
  std::vector<std::string> calls;

  int open(const fs::path& path, OpenFor use) override {
    calls.push_back("open " + path.filename().string());
    errno = open_error;
    if (open_error != 0 && path.filename() == "checkpoint.safetensors") return -1;
    return FileSystem::open(path, use);
  }
  std::ptrdiff_t read_at(std::uint64_t position, int file, void* out, std::size_t bytes) override {
    errno = read_error;
    return read_error != 0 ? -1 : FileSystem::read_at(position, file, out, bytes);
  }
  int fsync(int file) override {
    calls.emplace_back("fsync");
    return FileSystem::fsync(file);
  }
  int rename(const fs::path& from, const fs::path& to) override {
    if (renames++ != failing_rename) return FileSystem::rename(from, to);
    errno = EIO;
    return -1;
  }
};

TEST_F(CheckpointFiles, LoadWhicheverRenameFailed) {
  for (int failing = 0; failing < 3; ++failing) {  // in write_file_atomically, to the previous one, to the last one
    const std::int64_t before = saved_step();
    FaultyFileSystem faults;
    faults.failing_rename = failing;
    {
      const WithFileSystem in_use(faults);
      EXPECT_THAT(message_of([&] { save(); }), HasSubstr(": Input/output error"));
    }
    EXPECT_EQ(saved_step(), failing == 0 ? before : before + 1);
    EXPECT_FALSE(fs::exists(folder / "checkpoint.next.safetensors"));
    EXPECT_TRUE(fs::exists(last) && fs::exists(previous));
    trainer.restore(*load_checkpoint(folder, trainer.state(), config, corpus));
    save();
    EXPECT_EQ(saved_step(), trainer.step());
  }
}

TEST_F(CheckpointFiles, AreNotPassedOverWhenTheyCannotBeRead) {
  for (const int error : {EACCES, EMFILE, EIO})
    for (const bool opened : {false, true}) {
      FaultyFileSystem faults;
      (opened ? faults.read_error : faults.open_error) = error;
      const WithFileSystem in_use(faults);
      EXPECT_THAT(message_of([&] { saved_step(); }),
                  AllOf(HasSubstr(last.string() + ": cannot be "), testing::EndsWith(std::strerror(error))));
    }
  fs::resize_file(last, 100);
  EXPECT_EQ(saved_step(), 1);  // damage is passed over
  fs::remove(last);
  fs::create_directory(last);
  EXPECT_THAT(message_of([&] { saved_step(); }), HasSubstr(last.string() + ": must be a regular file"));
}

TEST_F(CheckpointFiles, ComeAfterTheLinesOfTheirSteps) {
  apps::JSONLines(folder / "metrics.jsonl").append({{"step", 3}});
  FaultyFileSystem watched;
  const WithFileSystem in_use(watched);
  apps::JSONLines(folder / "events.out.tfevents.braid").append({{"step", 3}});
  watched.calls.clear();
  save();
  EXPECT_THAT(watched.calls, testing::Contains("open events.out.tfevents.braid"));
  fs::remove(folder / "events.out.tfevents.braid");
  watched.calls.clear();
  save();
  EXPECT_THAT(watched.calls, testing::ElementsAre("open metrics.jsonl", "fsync", StartsWith("open checkpoint.next."),
                                                  "fsync", "open " + folder.filename().string(), "fsync"));
}

TEST_F(CheckpointFiles, GiveTheSettingsOfTheirModel) {
  config.training.dtype = DType::bf16;
  config.training.experts = 4;
  config.training.experts_per_token = 3;
  config.training.lora = 2;
  config.training.value_residual = true;
  save();
  const apps::TrainerSettings read = load_run(folder).training;
  EXPECT_EQ(read.dtype, DType::bf16);
  EXPECT_EQ(read.experts_per_token, 3);
  EXPECT_EQ(read.lora, 2);
  EXPECT_TRUE(read.value_residual);
}

TEST_F(CheckpointFiles, OfModelsThatTheyDoNotHoldAreRefusedBeforeTheyTakeMemory) {
  const std::string whole = load_safetensors(last).metadata.at("config");
  const auto refusal = [&](const char* key, const nlohmann::json& value) {
    change([&](auto& entries) {
      nlohmann::json settings = nlohmann::json::parse(whole);
      settings[key] = value;
      entries["config"] = settings.dump();
    });
    const std::string message = message_of([&] { load_run(folder); });
    EXPECT_THAT(message, StartsWith(last.string() + ": the checkpoint's 'config'"));
    return message;
  };
  const std::string whole_number = "' must be a whole number from 1 to 2147483647 but is ";
  EXPECT_THAT(refusal("layers", 4294967298), HasSubstr("'layers" + whole_number + "4294967298"));
  EXPECT_THAT(refusal("layers", 1e300), HasSubstr("'layers" + whole_number + "1e+300"));
  EXPECT_THAT(refusal("heads", 0), HasSubstr("'heads" + whole_number + "0"));
  EXPECT_THAT(refusal("layers", 1'000'000), HasSubstr("has 1000000 layers"));
  const nlohmann::json deep{{"model_type", "gpt2"}, {"n_embd", 4}, {"n_head", 1}, {"n_layer", 1'000'000}};
  EXPECT_THAT(refusal("architecture", deep), HasSubstr("has 1000000 layers"));
  EXPECT_THAT(refusal("channels", 4096), HasSubstr("has 4096 channels but its embedding 4"));
  EXPECT_THAT(refusal("experts", 100'000), HasSubstr("100000 experts"));
  EXPECT_THAT(refusal("lora", 1'000'000), HasSubstr("LoRA of rank 1000000"));
  EXPECT_THAT(refusal("streams", 65), HasSubstr("'streams' must be an integer from 1 to 64 but is 65"));
  EXPECT_THAT(refusal("sinkhorn_iterations", 1001), HasSubstr("from 1 to 1000 but is 1001"));
}

TEST_F(CheckpointFiles, WithOtherMetadataAreRefusedByNameInOneLine) {
  const std::string name = last.string() + ": the checkpoint", quoted = "' must be a whole number but is '";
  EXPECT_EQ(message_with([](auto& entries) { entries.erase("rng_key"); }), name + " has no 'rng_key'");
  EXPECT_EQ(message_with([](auto& entries) { entries["rng_key"] = "1x"; }), name + "'s 'rng_key" + quoted + "1x'");
  const std::string message = message_with([](auto& entries) { entries["rng_key"] = "\n" + std::string(9999, '1'); });
  EXPECT_THAT(message, StartsWith(name + "'s 'rng_key" + quoted + "\\n111"));
  EXPECT_LT(message.size(), name.size() + 150);
}

TEST_F(CheckpointFiles, ThatAreDamagedAreRefusedWithBothChecksums) {
  SafetensorsFile file = load_safetensors(last);
  const std::string actual = file.metadata.at("checksum");
  file.metadata["checksum"] = "another";
  save_safetensors(last, file.tensors, file.metadata);
  EXPECT_EQ(message_of([&] { load_run(last); }),
            last.string() + ": the checkpoint is damaged: its checksum must be another but is " + actual);
}

TEST_F(CheckpointFiles, OfRunsThatNameTheKernelTargetAloneAreLoaded) {
  change([](auto& entries) {
    std::string& set = entries["instruction_set"];  // avx512 (AVX3_DL), ..
    set = kernel_target() + set.substr(set.find(')') + 1);
  });
  EXPECT_EQ(saved_step(), 2);
}

TEST_F(CheckpointFiles, OfAnotherProcessorAreLoadedOnRequest) {
  const std::string message = message_with([](auto& entries) { entries["instruction_set"] = "ABACUS"; });
  EXPECT_THAT(message, AllOf(StartsWith("--resume: the run was computed with ABACUS but this process computes with "),
                             HasSubstr("--allow-other-processor continues nevertheless")));
  if (instruction_set() != InstructionSet::baseline) {
    EXPECT_THAT(message_with([](auto& entries) { entries["instruction_set"] = "baseline (SSE2)"; }),
                HasSubstr("; BRAID_ISA=baseline computes as it did, --allow-other-processor continues nevertheless"));
  }
  config.allow_other_processor = true;
  EXPECT_EQ(saved_step(), 2);
}

}  // namespace
}  // namespace braid::train_lm

#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <braid/core/dtype.h>

namespace braid::examples {

/// The folder of the running program.
std::filesystem::path program_folder();

/// The commit of the checkout that the program was built in; "unknown" outside one.
std::string git_commit();

/// The best one that the processor has and, for activations of bf16 and for f32 under matmul_precision(), what makes
/// their products: bits of results depend on it.
std::string instruction_set(DType dtype = DType::f32);

/// Processor, cores, threads in use, system and compiler: what a result depends on beside its configuration.
nlohmann::ordered_json machine_info();

/// `20260131-142501`, local time: names a new results folder.
std::string time_stamp();

/// Runs a script of the folder plots/ beside the program. Returns false, and says on stderr what it `needs`, when it
/// cannot.
bool run_script(const std::string& script, const std::vector<std::string>& arguments, const std::string& needs);

/// One that draws with matplotlib.
bool run_plot_script(const std::string& script, const std::filesystem::path& in, const std::filesystem::path& out);

}  // namespace braid::examples

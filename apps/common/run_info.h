#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <braid/core/bits.h>
#include <braid/core/dtype.h>

namespace braid::apps {

/// The commit of the checkout that the program was built in; "unknown" outside one.
std::string git_commit();

/// What the bits of results depend on: the instruction set, with kernel_target() in parentheses, and, for bf16
/// activations and for f32 under matmul_precision(), the unit that computes their products, or `portable` for portable
/// bits, which depend on neither; and `BRAID_MHC_PATH=reference`, if it is.
std::string arithmetic(DType dtype = DType::f32, Bits bits = Bits::fast);

/// The forms of the ops of hyper-connections that this thread runs, as BRAID_MHC_PATH names them: `fused` or
/// `reference`.
std::string mhc_path();

/// Processor, cores, threads in use, system, compiler and mhc_path(): what results depend on besides their
/// configuration.
nlohmann::ordered_json machine_info();

/// `20260131-142501`, local time: names a new results folder.
std::string time_stamp();

/// Runs a script of the folder plots/ next to the program. Returns false if it fails, with a line on stderr that says
/// why: the script, Python or matplotlib is missing, or the script's own last line.
bool run_script(const std::string& script, const std::vector<std::string>& arguments);

/// Runs a script that draws with matplotlib, as `SCRIPT in out`.
bool run_plot_script(const std::string& script, const std::filesystem::path& in, const std::filesystem::path& out);

}  // namespace braid::apps

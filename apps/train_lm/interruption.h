#pragma once

namespace braid::train_lm {

/// From now on SIGINT, SIGTERM and SIGHUP only set interrupted(), those that are ignored (as under nohup) excepted.
/// Call it before any other thread starts: they are taken by a thread, as handlers must not run inside of a matrix
/// product, where oneDNN has moved the stack pointer into its own data.
void catch_interrupts();

/// Whether one has come.
bool interrupted();

}  // namespace braid::train_lm

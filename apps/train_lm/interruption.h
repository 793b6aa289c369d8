#pragma once

namespace braid::train_lm {

/// From now on SIGINT, SIGTERM and SIGHUP only set interrupted(), except those that are ignored (as under nohup).
/// Call it before any other thread starts: one thread receives the signals, since handlers must not run inside a matrix
/// product, where oneDNN has moved the stack pointer into its own data.
void catch_interrupts();

/// Whether one of these signals has arrived.
bool interrupted();

}  // namespace braid::train_lm

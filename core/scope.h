#pragma once

namespace braid {

/// The base of a scope, Derived, that takes effect on a thread while at least one is alive there.
template <class Derived>
class Scope {
 public:
  Scope() { ++alive_; }
  ~Scope() { --alive_; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  static bool active() { return alive_ > 0; }  ///< whether one is alive on this thread

 private:
  static inline thread_local int alive_ = 0;
};

}  // namespace braid

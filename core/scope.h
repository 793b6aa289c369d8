#pragma once
#include <utility>

namespace braid {

/// The base of a scope, Derived, that takes effect on a thread while at least one is alive there.
template <class Derived>
class Scope {
 public:
  Scope() { ++alive_; }  ///< begins it
  ~Scope() { --alive_; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  static bool active() { return alive_ > 0; }  ///< whether one is alive on this thread

 private:
  static inline thread_local int alive_ = 0;
};

/// The base of a scope, Derived, that collects what a thread does while it is the innermost one there.
template <class Derived>
class CollectingScope {
 public:
  CollectingScope() : outer_(std::exchange(innermost_, this)) {}  ///< becomes the innermost one
  ~CollectingScope() { innermost_ = outer_; }
  CollectingScope(const CollectingScope&) = delete;
  CollectingScope& operator=(const CollectingScope&) = delete;

  static Derived* active() { return static_cast<Derived*>(innermost_); }  ///< the innermost one, or null

 private:
  static inline thread_local CollectingScope* innermost_ = nullptr;

  CollectingScope* outer_;
};

}  // namespace braid

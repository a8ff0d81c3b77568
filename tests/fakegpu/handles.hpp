#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fakegpu.hpp"

namespace fakegpu {

/// The objects behind a library's handles. No handle is given out twice, so that a call with a destroyed one is noticed
/// and doesn't find a younger object.
template <class Handle, class Object>
class Handles {
 public:
  explicit Handles(const char* kind) : kind_(kind) {}

  Handle add(std::shared_ptr<Object> object) {
    count_object(kind_, 1);
    const std::lock_guard lock(mutex_);
    next_ += 16;
    const auto handle = reinterpret_cast<Handle>(next_);
    objects_.emplace(handle, std::move(object));
    return handle;
  }

  std::shared_ptr<Object> get(Handle handle, const char* call) {
    const std::lock_guard lock(mutex_);
    return find(handle, call)->second;
  }

  std::shared_ptr<Object> take(Handle handle, const char* call) {
    count_object(kind_, -1);
    const std::lock_guard lock(mutex_);
    const auto found = find(handle, call);
    auto object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

  std::vector<std::shared_ptr<Object>> all() {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Object>> objects;
    for (const auto& [handle, object] : objects_) objects.push_back(object);
    return objects;
  }

 private:
  auto find(Handle handle, const char* call) {
    const auto found = objects_.find(handle);
    if (found == objects_.end()) {
      die(std::string(call) + ": this " + kind_ + " was destroyed, or never made by this library");
    }
    return found;
  }

  const char* kind_;
  std::mutex mutex_;
  std::map<Handle, std::shared_ptr<Object>> objects_;
  std::uintptr_t next_ = 0;
};

}  // namespace fakegpu

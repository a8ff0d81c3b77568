#pragma once

#include <exception>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/launch/world.hpp>

namespace ddp {

/// Collective. Throws the same AgreedError on all ranks when any rank brought a failure: the first failing rank's
/// status, name and message, and how many others failed too; the message alone when it is the same on every rank.
void agree_on(const World& world, const std::optional<Error>& failure);

/// Collective. Runs work that may fail on this rank alone (parsing, opening, allocating; no collective inside, a peer
/// would wait for it) and returns its result; if it throws on any rank, all ranks throw the same AgreedError.
template <class Work>
std::invoke_result_t<Work> agree(const World& world, Work&& work) {
  std::optional<Error> failure;
  const auto guarded = [&](auto&& run) {
    try {
      run();
    } catch (const Error& error) {
      failure = error;
    } catch (const std::bad_alloc&) {
      failure = Error(Status::failed,
                      "could not get the memory for this rank's part of the work: out of memory; use "
                      "fewer ranks a host, or more hosts, or less data");
    } catch (const std::exception& error) {
      failure = Error(Status::failed, error.what());
    }
    agree_on(world, failure);
  };
  if constexpr (std::is_void_v<std::invoke_result_t<Work>>) {
    guarded(work);
  } else {
    std::optional<std::invoke_result_t<Work>> result;
    guarded([&] { result.emplace(work()); });
    return std::move(*result);
  }
}

}  // namespace ddp

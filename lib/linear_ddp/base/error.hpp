#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace ddp {

/// How a run ended; the values are the program's exit statuses.
enum class Status : int {
  ok = 0,
  failed = 1,        ///< while running: a device, NCCL, MPI, I/O, a non-finite loss, ranks that disagree
  wrong_use = 2,     ///< options, configuration, input data
  interrupted = 75,  ///< stopped by a signal after a complete checkpoint
  timed_out = 124,   ///< a collective passed the time-out
  cancelled = 130,   ///< stopped by SIGINT
};

/// A failure, told in one message for a person: what was attempted, the cause in the words of the library that
/// reported it, and what to try.
class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  [[nodiscard]] Status status() const noexcept { return status_; }

 private:
  Status status_;
};

/// The user asked for something that cannot be done, or gave data that cannot be read.
class UseError : public Error {
 public:
  explicit UseError(const std::string& message) : Error(Status::wrong_use, message) {}
};

/// An error that every rank throws at the same point with the same message: rank 0 alone reports it, and all ranks can
/// leave MPI in good order. Any other error belongs to one rank, whose peers may be waiting for it.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// Throws Error(Status::failed): "could not <attempt>: <cause> [file.cpp:line]"; a non-empty remedy follows the cause.
[[noreturn]] void fail(const std::string& attempt, const std::string& cause, const std::string& remedy = {},
                       std::source_location where = std::source_location::current());

/// As fail, with the text of the C library's `errno`.
[[noreturn]] void fail_errno(const std::string& attempt, const std::string& remedy = {},
                             std::source_location where = std::source_location::current());

}  // namespace ddp

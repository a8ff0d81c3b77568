#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ddp {

/// Writes parts one after the other as a whole file or not at all: to a temporary file in the same folder, flushed to
/// disk (fsync), renamed over `path`, folder flushed. Missing folders are made. Throws Error with the system's words;
/// the temporary file is gone then, and what was at `path` before is untouched (or, when only the folder could not be
/// flushed, already replaced as a whole). A `path` that is there and is no regular file (a folder, /dev/null) is
/// refused. A symbolic link stays, and where it leads is written; a file that is replaced hands on its permissions.
void write_file_atomically(const std::string& path, const std::vector<std::span<const std::byte>>& parts);

/// What `fill` gives to its argument, part by part, in the same way: for files that need not be in memory as a whole.
/// Nothing is written when it throws.
using FilePart = std::function<void(std::span<const std::byte>)>;
void write_parts_atomically(const std::string& path, const std::function<void(const FilePart&)>& fill);

/// Finds out, before hours of work, whether write_file_atomically(path, …) can: makes missing folders and a temporary
/// file, and removes the latter. Throws Error.
void require_writable(const std::string& path);

}  // namespace ddp

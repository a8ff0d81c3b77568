#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <linear_ddp/data/safetensors.hpp>

namespace ddp {

/// The whole state of a training between two steps, the same for any number of ranks: numbers by their names, and texts
/// that tell what they belong to. Whoever has a part of the state names it once, in one function for both ways:
///
///   void exchange(Checkpoint& state) { state.exchange("steps", steps_); … }
class Checkpoint {
 public:
  /// Nothing yet: exchange takes values up.
  Checkpoint() = default;
  /// Of a file that is complete: exchange gives its values back.
  explicit Checkpoint(StoredFile file) : file_(std::move(file)), gives_back_(true) {}

  [[nodiscard]] bool gives_back() const noexcept { return gives_back_; }
  [[nodiscard]] const StoredFile& file() const noexcept { return file_; }
  /// The value that a text has, empty when it is not there.
  [[nodiscard]] std::string text(const std::string& name) const;
  void set_text(const std::string& name, const std::string& value) { file_.metadata[name] = value; }

  /// Takes values up, or gives those of the name back: all `numel` of them, or none, where there were none. Throws
  /// UseError when the file has other ones.
  void exchange(const std::string& name, std::vector<float>& values, std::size_t numel);
  void exchange(const std::string& name, std::vector<double>& values, std::size_t numel);
  void exchange(const std::string& name, std::int64_t& value);
  void exchange(const std::string& name, bool& value);

 private:
  template <class T>
  void exchange_values(const std::string& name, std::vector<T>& values, std::size_t numel);

  StoredFile file_;
  bool gives_back_ = false;
};

struct CheckpointFile {
  std::int64_t step;  ///< that the training had done
  std::string path;
};

/// The files of a folder that have a checkpoint's name, complete or not, the newest first; none when it is not there.
/// Throws Error when it cannot be looked into.
[[nodiscard]] std::vector<CheckpointFile> checkpoint_files(const std::string& folder);

/// The path of the checkpoint of a step: FOLDER/step-000000000042.safetensors.
[[nodiscard]] std::string checkpoint_path(const std::string& folder, std::int64_t step);

/// Writes the whole file or none (see base/atomic_file.hpp) into a folder that is there, and then removes all but the
/// newest `keep` of those up to this step, and what earlier writers left half done. Throws Error.
void write_checkpoint(const std::string& folder, std::int64_t step, const Checkpoint& state, std::int64_t keep);

/// Throws UseError when the file is not complete: it is cut short, or a bit of it is not what was written. Error when
/// reading fails.
[[nodiscard]] Checkpoint read_checkpoint(const std::string& path);

/// Over all tensors and texts but the checksum itself, with which a file becomes a checkpoint's.
[[nodiscard]] std::string checkpoint_checksum(const StoredFile& file);

}  // namespace ddp

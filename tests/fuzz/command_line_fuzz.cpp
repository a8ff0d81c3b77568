// Arguments, one a line.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <vector>

#include <linear_ddp/base/error.hpp>
#include "fuzz/input.hpp"
#include "options.hpp"

namespace {

/// As main gets them; `text` must outlive them.
std::vector<const char*> arguments(std::string& text) {
  std::vector<const char*> pointers{"linear_ddp"};
  for (std::size_t begin = 0; begin < text.size(); begin = text.find('\0', begin) + 1) {
    pointers.push_back(text.data() + begin);
  }
  return pointers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  std::replace(text.begin(), text.end(), '\n', '\0');
  text += '\0';
  const auto given = arguments(text);
  try {
    const auto line = ddp::app::parse_command_line(static_cast<int>(given.size()), given.data());
    if (line.command == ddp::app::Command::train && !line.text) {
      using Json = nlohmann::ordered_json;
      static_cast<void>(line.train.to_json().dump(-1, ' ', false, Json::error_handler_t::replace));
    }
  } catch (const ddp::UseError&) {
  } catch (const std::exception& error) {
    ddp::fuzz::require(false, fmt::format("arguments are refused as wrong use, not: {}", error.what()));
  }
  return 0;
}

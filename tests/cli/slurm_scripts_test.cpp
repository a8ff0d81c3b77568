// The batch scripts that users copy, and the scripts that build: checked without a Slurm.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

#include "support/subprocess.hpp"
#include "support/temporary_folder.hpp"

namespace ddp::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const fs::path source = LINEAR_DDP_SOURCE_DIR;

std::string text_of(const fs::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::set<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// What sbatch takes as the values of the options that a script may need (tried with sbatch 22.05).
std::optional<std::string> value_pattern(const std::string& option) {
  static const std::string count = "[1-9][0-9]*";
  static const std::map<std::string, std::string> patterns{
      {"account constraint error job-name output partition qos", "\\S+"},
      {"cpus-per-task ntasks ntasks-per-node", count},
      {"exclusive", ""},
      {"gpus-per-node gpus-per-task", "([a-z][a-z0-9_]*:)?" + count},
      {"gres", "gpu(:[a-z][a-z0-9_]*)?:" + count},
      {"mem mem-per-cpu", "[0-9]+[KMGT]?"},
      {"nodes", count + "(-" + count + ")?"},
      {"signal", "(B:)?[A-Z0-9]+(@[0-9]+)?"},
      {"time", "([0-9]+-)?[0-9]{1,2}(:[0-5][0-9]){1,2}"}};
  for (const auto& [options, pattern] : patterns) {
    if (words_of(options).contains(option)) return pattern;
  }
  return std::nullopt;
}

/// "--lr" and all others that the program's own help names.
const std::set<std::string>& program_options() {
  static const std::set<std::string> options = [] {
    const std::string help = run({LINEAR_DDP_PROGRAM, "--help"}).out;
    const std::regex option("--[a-z][a-z-]*");
    return std::set<std::string>(std::sregex_token_iterator(help.begin(), help.end(), option), {});
  }();
  return options;
}

std::vector<std::string> problems_of_directives(const std::string& script) {
  std::vector<std::string> problems;
  std::set<std::string> seen;
  bool command_seen = false;
  for (const auto& line : lines_of(script)) {
    std::smatch match;
    if (std::regex_match(line, match, std::regex("#SBATCH --([a-z-]+)(=(.*))?"))) {
      const auto pattern = value_pattern(match[1]);
      if (command_seen) {
        problems.push_back("after a command: " + line);
      } else if (!seen.insert(match[1]).second) {
        problems.push_back("twice: " + line);
      } else if (!pattern) {
        problems.push_back("unknown: " + line);
      } else if (!std::regex_match(match[3].str(), std::regex(*pattern))) {
        problems.push_back("value: " + line);
      }
    } else if (std::regex_search(line, std::regex("^\\s*#\\s*SBATCH", std::regex::icase))) {
      problems.push_back("not #SBATCH --option[=value]: " + line);
    }
    if (!line.empty() && line[0] != '#') command_seen = true;
  }
  for (const char* needed : {"nodes", "time", "cpus-per-task"}) {
    if (!seen.contains(needed)) problems.push_back(std::string("missing: ") + needed);
  }
  return problems;
}

TEST(Directives, AreOnlyThoseThatSbatchTakes) {
  const std::string needed = "#SBATCH --nodes=1\n#SBATCH --time=1-00:00:00\n#SBATCH --cpus-per-task=1\n";
  EXPECT_THAT(problems_of_directives("#!/bin/bash\n" + needed), IsEmpty());
  const auto problem = [&](const std::string& directive) { return problems_of_directives(needed + directive); };
  for (const char* directive : {"# SBATCH --mem=1G", " #SBATCH --mem=1G", "#sbatch --mem=1G", "#SBATCH -n 4"}) {
    EXPECT_THAT(problem(directive), ElementsAre(std::string("not #SBATCH --option[=value]: ") + directive));
  }
  for (const char* directive : {"#SBATCH --mem=1.5G", "#SBATCH --ntasks=0", "#SBATCH --ntasks=4x", "#SBATCH --nodes",
                                "#SBATCH --job-name=a b", "#SBATCH --signal=B:USR1@x"}) {
    EXPECT_EQ(problem(directive).size(), 1U) << directive;
  }
  EXPECT_THAT(problem("#SBATCH --ntask=4"), ElementsAre("unknown: #SBATCH --ntask=4"));
  EXPECT_THAT(problem("#SBATCH --nodes=2"), ElementsAre("twice: #SBATCH --nodes=2"));
  EXPECT_THAT(problem("set -e\n#SBATCH --mem=1G"), ElementsAre("after a command: #SBATCH --mem=1G"));
  EXPECT_THAT(problems_of_directives("#SBATCH --nodes=1\n#SBATCH --cpus-per-task=1\n"), ElementsAre("missing: time"));
  EXPECT_THAT(problems_of_directives("#SBATCH --nodes=1\n#SBATCH --cpus-per-task=1\n#SBATCH --time=10m\n"),
              ElementsAre("value: #SBATCH --time=10m"));
}

class BatchScript : public ::testing::TestWithParam<fs::path> {
 protected:
  std::string text = text_of(GetParam());
};

TEST_P(BatchScript, HasOnlyDirectivesThatSbatchTakes) {
  EXPECT_THAT(problems_of_directives(text), IsEmpty());
}

TEST_P(BatchScript, StartsARankForEachGpu) {
  std::smatch gpus, ranks;
  if (!std::regex_search(text, gpus, std::regex("--gpus-per-node=([0-9]+)"))) GTEST_SKIP() << "no GPUs";
  ASSERT_TRUE(std::regex_search(text, ranks, std::regex("--ntasks-per-node=([0-9]+)")));
  EXPECT_EQ(gpus[1], ranks[1]);
}

/// Runs the script with a launcher that prints what it was asked to start and ends with 75.
Outcome run_with_stubs(const std::string& script) {
  const TemporaryFolder scratch;
  const fs::path& folder = scratch.path();
  for (const char* launcher : {"srun", "mpirun"}) {
    std::ofstream(folder / launcher) << "#!/bin/bash\nprintf '%s\\n' " << launcher
                                     << " \"keepalive=${OMPI_MCA_oob_tcp_keepalive_time-}\" \"$@\"\nexit 75\n";
    fs::permissions(folder / launcher, fs::perms::owner_all);
  }
  std::ofstream(folder / "script") << script;
  return run(
      {"bash", folder / "script"},
      {{"PATH", folder.string() + ":" + std::getenv("PATH")}, {"SLURM_CPUS_PER_TASK", "3"}, {"SLURM_JOB_ID", "17"}});
}

/// The arguments from the program on, once every option of them is one that the program has.
std::vector<std::string> program_and_arguments(const std::string& printed) {
  auto words = lines_of(printed);
  const auto program = std::ranges::find(words, "build/linear_ddp");
  EXPECT_NE(program, words.end()) << printed;
  words.erase(words.begin(), program);
  for (const auto& word : words) {
    EXPECT_TRUE(!word.starts_with("--") || program_options().contains(word)) << word;
  }
  return words;
}

TEST_P(BatchScript, StartsTheProgramBySrunOrByMpirunAndKeepsItsStatus) {
  const auto by_srun = run_with_stubs(text);
  EXPECT_EQ(by_srun.status, 75);
  EXPECT_EQ(by_srun.err, "");
  EXPECT_THAT(by_srun.out, HasSubstr("srun\nkeepalive=\n--mpi=pmix\n--cpus-per-task=3\n--cpu-bind=cores\n"));

  // What a user changes to start by mpirun: without the srun line, with the lines that are commented out.
  auto edited = std::regex_replace(text, std::regex("(^|\n)exec srun[^\n]*"), "$1");
  edited = std::regex_replace(edited, std::regex("(^|\n)#(exec|export) "), "$1$2 ");
  const auto by_mpirun = run_with_stubs(edited);
  EXPECT_EQ(by_mpirun.status, 75);
  EXPECT_EQ(by_mpirun.err, "");
  const bool several_nodes = text.find("--nodes=1\n") == std::string::npos;
  EXPECT_THAT(by_mpirun.out, HasSubstr(several_nodes ? "mpirun\nkeepalive=5\n" : "mpirun\nkeepalive=\n"));
  EXPECT_THAT(by_mpirun.out, HasSubstr("\n--map-by\nslot:PE=3\n"));
  EXPECT_EQ(edited.find("exec timeout -k") != std::string::npos, several_nodes);

  EXPECT_EQ(program_and_arguments(by_srun.out), program_and_arguments(by_mpirun.out));
}

TEST_P(BatchScript, NamesFilesThatExist) {
  const auto words = program_and_arguments(run_with_stubs(text).out);
  const auto data = std::ranges::find(words, "--data");
  if (data == words.end()) GTEST_SKIP() << "synthetic data";
  EXPECT_TRUE(fs::exists(source / *(data + 1))) << *(data + 1);
}

std::vector<fs::path> batch_scripts() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(source / "slurm")) {
    if (entry.path().extension() == ".sbatch") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::string name_of(const ::testing::TestParamInfo<fs::path>& info) {
  auto name = info.param.filename().string();
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Slurm, BatchScript, ::testing::ValuesIn(batch_scripts()), name_of);

TEST(BatchScripts, AreAllInTheTableOfTheReadme) {
  const auto readme = text_of(source / "slurm/README.md");
  EXPECT_GE(batch_scripts().size(), 4U);
  for (const auto& script : batch_scripts())
    EXPECT_THAT(readme, HasSubstr(fmt::format("`{}`", script.filename().string())));
}

TEST(Scripts, AreBash) {
  auto files = batch_scripts();
  for (const char* file : {"app/quickstart", "tests/run", "tests/support/setup.sh", ".ci/run"}) {
    files.push_back(source / file);
  }
  for (const auto& file : files) {
    const auto outcome = run({"bash", "-n", file});
    EXPECT_EQ(outcome.status, 0) << file << ": " << outcome.err;
    if (file.extension() != ".sh") {
      EXPECT_THAT(text_of(file), AllOf(::testing::StartsWith("#!/bin/bash\n"), HasSubstr("\nset -euo pipefail\n")));
    }
  }
}

TEST(Scripts, TestsRunExplainsItselfAndRefusesWhatItDoesNotKnow) {
  const auto help = run({source / "tests/run", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("--fast"), Not(HasSubstr("#")), Not(HasSubstr("set -"))));
  const auto unknown = run({source / "tests/run", "--fats"});
  EXPECT_NE(unknown.status, 0);
  EXPECT_THAT(unknown.err, HasSubstr("--fats"));
}

}  // namespace
}  // namespace ddp::test

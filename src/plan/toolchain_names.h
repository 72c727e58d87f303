// What toolchains are called: variables, folders of a home, files that hold tokens. Names only,
// the same on every platform.
#pragma once

#include <string>
#include <vector>

namespace belljar {

struct Caller;

// Folders of a home that hold keys, and never a toolchain.
inline constexpr const char* kKeyStores[] = {".ssh",           ".aws",  ".gnupg",
                                             ".config/gcloud", ".kube", ".docker"};

// Each names one folder (the first four of the second list: several).
inline constexpr const char* kLocations[] = {"CONDA_PREFIX",  "VIRTUAL_ENV",
                                             "PYENV_ROOT",    "NVM_DIR",
                                             "FNM_DIR",       "VOLTA_HOME",
                                             "N_PREFIX",      "RUSTUP_HOME",
                                             "CARGO_HOME",    "GOROOT",
                                             "JAVA_HOME",     "SDKMAN_DIR",
                                             "MAVEN_HOME",    "M2_HOME",
                                             "GRADLE_HOME",   "BUN_INSTALL",
                                             "DENO_INSTALL",  "HOMEBREW_PREFIX",
                                             "ASDF_DIR",      "ASDF_DATA_DIR",
                                             "MISE_DATA_DIR", "UV_PYTHON_INSTALL_DIR",
                                             "PIPX_HOME"};
inline constexpr const char* kSearchPaths[] = {
    "CPATH",           "C_INCLUDE_PATH",  "CPLUS_INCLUDE_PATH", "LIBRARY_PATH",
    "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH",  "PYTHONPATH"};
inline constexpr const char* kHomeFolders[] = {".pyenv",
                                               ".conda/envs",
                                               "miniconda3",
                                               "anaconda3",
                                               "miniforge3",
                                               "mambaforge",
                                               ".nvm",
                                               ".fnm",
                                               ".volta",
                                               ".rustup",
                                               ".cargo",
                                               "go/bin",
                                               "go/pkg",
                                               ".sdkman",
                                               ".jenv",
                                               ".bun",
                                               ".deno",
                                               ".asdf",
                                               ".local/share/mise",
                                               ".local/share/uv",
                                               ".local/pipx",
                                               ".local/share/pipx",
                                               ".local/share/fnm",
                                               ".local/share/pnpm",
                                               ".local/bin",
                                               ".local/lib",
                                               ".linuxbrew",
                                               ".nix-profile",
                                               ".local/state/nix/profiles",
                                               ".ghcup",
                                               ".opam",
                                               ".rbenv"};
// Tokens for registries live beside the tools.
inline constexpr const char* kSecrets[] = {".cargo/credentials", ".cargo/credentials.toml",
                                           ".local/share/uv/credentials", ".bun/.npmrc",
                                           ".sdkman/etc/credentials"};

// With nothing looked at: all the places where a toolchain might be. Folders of
// PATH are apart, since for X/bin all of X is meant where it has a lib.
struct ToolchainNames {
  std::vector<std::string> folders;
  std::vector<std::string> programs;
  std::vector<std::string> secrets;
};
ToolchainNames toolchain_names(const Caller& caller);

}  // namespace belljar

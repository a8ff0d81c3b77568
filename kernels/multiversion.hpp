#pragma once

// A portable build whose hot loops use the vectors of the machine it runs on: g++ compiles the function for each level
// and the loader picks one. Other compilers get the one version their flags name.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define DDP_MULTIVERSION __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DDP_MULTIVERSION
#endif

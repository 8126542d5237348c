/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Common part of shim-signals: SIGSEGV and SIGBUS in a program whose preload
 * library handles faults of the provider (kernel-shim/base/nofault.h).
 */
#pragma once

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/nofault.h"
#include "test.h"

struct signals_case {
	const char *name;
	void (*run)(void);
};

/* The program's dispositions: the output is the same without urxe. */
extern const struct signals_case same_cases[];
/* The same, and the program dies of a signal, except under a handler. */
extern const struct signals_case die_cases[];
/* Instructions that may fault, and urxe_nofault() itself. */
extern const struct signals_case nofault_cases[];

/*
 * Call urxe_nofault() if it is to be called after the program has set its
 * dispositions.
 */
void handlers_are_set(void);
/* Call urxe_nofault(), which must exist. */
bool nofault_install(void);
extern _Atomic uint32_t nofault_installed;
extern _Thread_local struct nofault_thread nofault_thread;

/* The result of an instruction that may fault. */
struct nofault_result {
	uint64_t failed, at;
};
/* One load or store of a byte, in the section of this program. */
struct nofault_result nofault_load(const void *at);
struct nofault_result nofault_store(void *at);

#define CASE(name)                 \
	{                          \
#name, case_##name \
	}

#define PAGE 4096l
/* below the lowest address that mmap(2) chooses */
#define NOT_MAPPED ((char *)(2 * PAGE))

/* An anonymous mapping with protection @prot. */
char *map_page(int prot);
/* A page of a file that is shorter: access raises SIGBUS. */
char *map_past_end(void);

void set_action(int sig, void *handler, int flags);
/* Fill the stack. */
int overflow(const _Atomic char *above);

/* Loads and stores that the compiler must execute. */
static inline char load(const char *at)
{
	return *(const volatile char *)at;
}

static inline void store(char *at)
{
	*(volatile char *)at = 1;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Included before each source of the core when it is built for the fuzzer.
 * Messages whose source and destination overlap are the user's own fault and
 * harmless; AddressSanitizer would stop at the first of them.
 */
#define __builtin_memcpy __builtin_memmove

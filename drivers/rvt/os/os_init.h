/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* os_init.h - start and end of os.c; for the module's own start and end. */
#ifndef RVT_OS_INIT_H
#define RVT_OS_INIT_H

/* Before anything of os.h is used. Return: 0 or -ENOMEM. */
int rvt_os_init(void);
/* After the last use of os.h; no work is queued any more. */
void rvt_os_exit(void);

#endif

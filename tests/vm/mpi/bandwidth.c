// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Rank 0 keeps a window of messages on their way to rank 1, which answers each
 * window. The last message of a window is looked at.
 * Prints "bandwidth SIZE MEGABYTES-PER-SECOND" for each size.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 16

static const int sizes[] = { 64, 4096, 65536, 1048576 };

static void send_window(char *memory, int size)
{
	MPI_Request request[WINDOW];

	for (int n = 0; n < WINDOW; n++)
		MPI_Isend(memory + (size_t)n * size, size, MPI_BYTE, 1, n, MPI_COMM_WORLD,
			  &request[n]);
	MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
	MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_window(char *memory, int size, char mark)
{
	MPI_Request request[WINDOW];
	char *last = memory + (size_t)(WINDOW - 1) * size;

	for (int n = 0; n < WINDOW; n++)
		MPI_Irecv(memory + (size_t)n * size, size, MPI_BYTE, 0, n, MPI_COMM_WORLD,
			  &request[n]);
	MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < size; i++) {
		if (last[i] != mark) {
			printf("byte %d of %d is wrong\n", i, size);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int rank, ranks, largest = sizes[sizeof(sizes) / sizeof(*sizes) - 1];
	char *memory = malloc((size_t)WINDOW * largest);

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2 || !memory)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (size_t n = 0; n < sizeof(sizes) / sizeof(*sizes); n++) {
		int size = sizes[n], windows = size < 65536 ? 50 : 5;
		double start = MPI_Wtime();

		for (int window = 0; window < windows; window++) {
			if (rank == 0) {
				memset(memory, window + 1, (size_t)WINDOW * size);
				send_window(memory, size);
			} else {
				receive_window(memory, size, window + 1);
			}
		}
		if (rank == 0)
			printf("bandwidth %d %.2f\n", size,
			       (double)size * WINDOW * windows / (MPI_Wtime() - start) / 1e6);
	}
	free(memory);
	return MPI_Finalize();
}

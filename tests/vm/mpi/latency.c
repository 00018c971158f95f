// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Two ranks send a message to and fro. Every byte that arrives is looked at.
 * Prints "latency SIZE MICROSECONDS" (half a round trip) for each size.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const int sizes[] = { 0, 1, 64, 4096, 65536, 1048576 };

/* What byte I of a message of round ROUND from RANK must be. */
static unsigned char pattern(int rank, int round, int i)
{
	return 31 * rank + 7 * round + i + (i >> 8);
}

static void fill(unsigned char *message, int size, int rank, int round)
{
	for (int i = 0; i < size; i++)
		message[i] = pattern(rank, round, i);
}

static void check(const unsigned char *message, int size, int rank, int round)
{
	for (int i = 0; i < size; i++) {
		if (message[i] != pattern(rank, round, i)) {
			printf("byte %d of %d in round %d is wrong\n", i, size, round);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
}

/* Seconds for all rounds, without making and checking the messages. */
static double pingpong(unsigned char *message, int size, int rank, int rounds)
{
	double spent = 0;

	for (int round = 0; round < rounds; round++) {
		fill(message, size, rank, round);
		double start = MPI_Wtime();
		if (rank == 0) {
			MPI_Send(message, size, MPI_BYTE, 1, round, MPI_COMM_WORLD);
			MPI_Recv(message, size, MPI_BYTE, 1, round, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			spent += MPI_Wtime() - start;
			check(message, size, 1, round);
		} else {
			unsigned char *answer = message + size;

			MPI_Recv(answer, size, MPI_BYTE, 0, round, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			MPI_Send(message, size, MPI_BYTE, 0, round, MPI_COMM_WORLD);
			check(answer, size, 0, round);
		}
	}
	return spent;
}

int main(int argc, char **argv)
{
	int rank, ranks, largest = sizes[sizeof(sizes) / sizeof(*sizes) - 1];
	unsigned char *message = malloc(2 * (size_t)largest);

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2 || !message)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (size_t n = 0; n < sizeof(sizes) / sizeof(*sizes); n++) {
		int rounds = sizes[n] < 65536 ? 200 : 20;
		double spent = pingpong(message, sizes[n], rank, rounds);

		if (rank == 0)
			printf("latency %d %.2f\n", sizes[n], spent / rounds / 2 * 1e6);
	}
	free(message);
	return MPI_Finalize();
}

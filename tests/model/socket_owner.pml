/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Model of receiving by pollers (provider/wire/socket_owner.h).  The processes
 * are: the network, which queues packets in the socket; the socket owner's
 * thread; two pollers, which stop at any time; time; and the program, which
 * closes the device when all packets are received.
 *
 * - Only one thread uses the server at a time, and none uses it after it was
 *   freed.
 * - Each packet is received, also after all pollers have stopped.
 * - No process waits forever.
 *
 * Time is abstract: a nap ends at any time, and a poll is not recent any more
 * at any time.  A poller that lingers after a response is a poller that polls
 * again: it releases the lock in between, and no process waits for it.
 */
#define PACKETS 3
#define POLLERS 2
#define POLLS 2 /* of each poller */

#define NONE 0
#define THREAD 1

byte queued, received; /* packets */
byte lock = NONE;
bool server = true, recent, suspended, stop;

byte inside; /* ghost: threads that use the server */

inline receive(found)
{
	assert(server);
	inside++;
	assert(inside == 1);
	found = queued > 0;
	if
	:: queued > 0 -> queued--; received++
	:: else
	fi;
	inside--
}

proctype network()
{
	byte n;

	do
	:: n < PACKETS -> queued++; n++
	:: else -> break
	od
}

/* socket_owner_poll() */
proctype poller(byte me)
{
	byte polls;
	bool found, mine;

	do
	:: polls < POLLS ->
		polls++;
		if
		:: suspended -> skip
		:: else ->
#ifdef NO_LOCK
			mine = true;
#else
			atomic { mine = lock == NONE;
				 if :: mine -> lock = me :: else fi };
#endif
			if
			:: mine ->
				if
#ifdef UNCHECKED
				:: true ->
#else
				:: server ->
#endif
					recent = true;
					receive(found);
					/* a large batch that is not data */
					if
					:: found -> suspended = true
					:: skip
					fi
#ifndef UNCHECKED
				:: else
#endif
				fi;
#ifndef NO_LOCK
				lock = NONE
#endif
			:: else
			fi
		fi
	:: break /* the program stops to poll */
	od
}

/* The last poll becomes old; a suspension ends. */
proctype time()
{
	do
	:: recent -> recent = false
	:: suspended -> suspended = false
	:: stop -> break
	od
}

/* socket_owner_serve() and socket_owner_release() */
proctype thread()
{
	bool found;

	do
	:: stop -> break
	:: !stop ->
		do
		:: recent && !stop ->
			/* a nap */
#ifdef NAP_FOREVER
			stop
#else
			skip
#endif
		:: else -> break
		od;
		atomic { lock == NONE -> lock = THREAD };
		receive(found);
		/* packets have waited during naps */
		if
		:: found -> suspended = true
		:: skip
		fi;
		lock = NONE;
		if
		:: found
#ifdef SLEEP_UNSEEN
		/* woken only by packets that arrive later */
		:: !found -> byte before = queued; (queued > before || stop)
#else
		:: !found -> (queued > 0 || stop)
#endif
		fi
	od;
	atomic { lock == NONE -> lock = THREAD };
	server = false;
	lock = NONE
}

proctype program()
{
	received == PACKETS;
	stop = true
}

init {
	byte i;

	atomic {
		run network();
		run thread();
		run time();
		run program();
		do
		:: i < POLLERS -> run poller(THREAD + 1 + i); i++
		:: else -> break
		od
	}
}

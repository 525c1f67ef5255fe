/* Who is in control: the switch between a robot and its understudy, for the model checker Spin.
 *
 *     operators --requests--> (may be lost) --> switch <-- samples (may be lost) -- hardware, proxy
 *     operators --commands--> (may be lost) --> switch --> the one in control
 *
 * It is the machine of src/switch: threads that pass samples on and hold a gate for reading while they do (Output, Command), one thread that alone
 * changes who is in control and holds the gate for writing meanwhile (Authority). The switch dies and comes back at any moment; requests for any
 * mode come at any moment from any number of operators, which are one process here since they do not wait for each other.
 *
 * Hardware, proxy and the network between have no state of their own: a sample or a command may arrive at any moment, and need not. A source that is
 * dead, one that was started again, and a network that loses what it says are the same to the switch, for any length of time: nothing comes. A sample
 * that arrives when its source has died since is one that arrives.
 *
 * Time is counted in ticks. The watchdog is WD of them. Between two ticks the switch looks once: its thread wakes far more often than the watchdog.
 * A hand-over that was asked for may take any number of ticks, in which the switch looks at the watchdog, and leaves off when the one in control is lost.
 *
 * Epochs only grow, so "of the same epoch" means "no change in between": one bit, set by each change, stands for the comparison of two numbers.
 *
 * What is asserted:
 *   A1  a sample goes out under the robot's name only while its source is the one whose outputs do
 *   A2  a command is given to whom it was meant for when it came in, and to nobody else but, in shadow, as a copy to the proxy
 *   A3  when the one in control is lost, at most one look of the switch passes until it is out of control: the other has it, or nobody. When both are
 *       lost and one that may have control is heard again, at most one look passes until it has it, or a hand-over to it that was asked for
 *   A4  a request that arrived is taken up before the next tick but one, not counting a hand-over before it
 *   A5  when nobody has control, the mode says stop
 *   A6  under ON_LOSS_PROXY the watchdog never gives control to the hardware, but to the one that had it when both were lost
 *
 * Each of BROKEN_GATE, BROKEN_FENCE, BROKEN_WATCH, BROKEN_WAIT and BROKEN_ANSWER takes out one part of the machine and must lead to a violation.
 * Rules for a loss: the other takes over; ON_LOSS_STOP: stop; ON_LOSS_PROXY: the proxy takes over from the hardware, a lost proxy means stop. Where the
 * other would take over and is lost too, the switch waits: a stop, until one of the two is heard.
 */
#ifndef WD
#define WD 1
#endif
#define HW 0
#define PX 1
#define NOBODY 2
#define N_THREAD 3

mtype = { hardware, proxy, mirror, shadow, stop };

chan request = [1] of { mtype };

/* The switch. */
bool is_running = true;
byte n_dead;              /* threads that know that it is not */
mtype mode = hardware;
byte control = HW, output_source = HW;
byte silent[2] = WD + 1;  /* ticks since a source was heard, up to WD + 1 */
byte since;               /* ticks since the watchdog counts, up to WD + 1 */
bool is_counting;         /* somebody was heard: the watchdog counts */
bool is_old;              /* the command at the gate came in before the last change */
bool is_waiting;          /* both are lost: the first who is heard plays */
byte lost = HW;           /* who had control then, */
mtype lost_mode = hardware;  /* and in which mode */
bool is_handing;          /* a hand-over is under way */
byte n_reader;
bool is_writing;
bool has_looked;

/* What the assertions remember. */
byte n_lost, age;

#ifdef BROKEN_GATE
#define MAY_ENTER true
#define MAY_CLOSE true
#else
#define MAY_ENTER (!is_writing)
#define MAY_CLOSE (!is_writing && n_reader == 0)
#endif

#define OTHER(s) (1 - (s))
#define IS_LOST (control != NOBODY && is_counting && silent[control] > WD && since > WD)

/* Passes outputs on. One thread stands for those of both sources, which share nothing but the gate. A sample is taken in and counts as heard; at the
 * gate it is seen whether its source speaks for the robot; then it is written. What does not speak is dropped, or goes out under another name. */
proctype Output() {
    byte source = NOBODY;
again:
    {
        do
        :: d_step { silent[HW] = 0; is_counting = true }
        :: d_step { silent[PX] = 0; is_counting = true }
        :: atomic { MAY_ENTER && output_source == HW -> n_reader++; source = HW }; goto write
        :: atomic { MAY_ENTER && output_source == PX -> n_reader++; source = PX }; goto write
        od;
write:
        assert(output_source == source);  /* A1 */
        atomic { source = NOBODY; n_reader-- };
        goto again
    } unless { !is_running };
    atomic { source = NOBODY; n_dead++ };
    atomic { is_running -> n_dead-- };
    goto again
}

/* Passes commands on. */
proctype Command() {
    byte meant = NOBODY, receiver = NOBODY;
again:
    {
        d_step { meant = control; is_old = false };  /* a command arrives */
        atomic {
            MAY_ENTER -> n_reader++;
            if
#ifndef BROKEN_FENCE
            :: is_old -> receiver = NOBODY  /* another epoch: dropped */
            :: !is_old -> receiver = control
#else
            :: receiver = control
#endif
            fi
        };
        assert(receiver == NOBODY || (receiver == meant && control == meant));  /* A2 */
        assert(receiver == NOBODY || mode != shadow || receiver == HW);         /* the copy for the proxy is nobody's order */
        atomic { meant = NOBODY; receiver = NOBODY; n_reader-- };
        goto again
    } unless { !is_running };
    atomic { meant = NOBODY; receiver = NOBODY; n_dead++ };
    atomic { is_running -> n_dead-- };
    goto again
}

/* Requests and the watchdog. The verdict is of one moment: what was heard is looked at once, and nobody else changes the rest. */
proctype Authority() {
    mtype asked, new_mode = hardware;
    byte wanted = NOBODY;
    bool is_change, is_last, will_wait;
again:
    {
        do
        :: atomic { !has_looked && nempty(request) ->
#ifdef BROKEN_ANSWER
            goto watch;
#endif
            request?asked;
            if
            :: asked == hardware || asked == shadow -> wanted = HW
            :: asked == proxy  -> wanted = PX
            :: asked == mirror -> wanted = control
            :: asked == stop   -> wanted = NOBODY
            fi;
            if
            :: asked == stop -> is_change = true
            :: asked == mirror -> is_change = (control != NOBODY)
            :: else -> is_change = (wanted == control || silent[wanted] <= WD)  /* otherwise refused, and told so */
            fi;
            new_mode = asked;
            asked = 0;
            is_handing = (is_change && wanted != NOBODY && wanted != control)
           };
           goto handover
        :: atomic { !has_looked && empty(request) ->
watch:
            is_last = true;
#ifndef BROKEN_WATCH
            if
            :: is_waiting && silent[lost] <= WD -> wanted = lost; new_mode = lost_mode; is_change = true
            :: is_waiting && silent[lost] > WD && silent[OTHER(lost)] <= WD ->
               wanted = OTHER(lost); is_change = true;
               if
               :: wanted == HW -> new_mode = hardware
               :: wanted == PX -> new_mode = proxy
               fi
            :: IS_LOST ->
#ifdef ON_LOSS_STOP
               wanted = NOBODY; new_mode = stop; is_change = true
#else
#ifdef ON_LOSS_PROXY
               if
               :: control == PX -> wanted = NOBODY; new_mode = stop; is_change = true; goto change
               :: else -> skip
               fi;
#endif
               wanted = OTHER(control); is_change = true;
               if
               :: silent[wanted] > WD -> wanted = NOBODY; new_mode = stop; will_wait = true
               :: silent[wanted] <= WD && wanted == HW -> new_mode = hardware
               :: silent[wanted] <= WD && wanted == PX -> new_mode = proxy
               fi
#endif
            :: else -> skip
            fi
#endif
           };
           goto change
        od;
handover:
        do
        :: atomic { !has_looked -> is_handing = false; break }
#ifndef BROKEN_WAIT
        :: atomic { !has_looked && is_handing && IS_LOST -> is_handing = false; is_change = false; break }
        :: atomic { !has_looked && is_handing && !IS_LOST -> has_looked = true }
#else
        :: atomic { !has_looked && is_handing -> has_looked = true }
#endif
        od;
change:
        if
        :: atomic { is_change && MAY_CLOSE -> is_writing = true };
#ifdef ON_LOSS_PROXY
           assert(!is_last || wanted != HW || (is_waiting && lost == HW));  /* A6: the last of a look is the watchdog */
#endif
           d_step {
               if
               :: control != wanted -> n_lost = 0  /* the assertions look at another one from here on */
               :: else -> skip
               fi;
               if
               :: will_wait -> lost = control; lost_mode = mode
               :: else -> lost = HW; lost_mode = hardware
               fi;
               is_waiting = will_wait; mode = new_mode; control = wanted; is_old = true;
               if
               :: wanted != NOBODY -> output_source = wanted
               :: else -> skip
               fi
           };
           is_writing = false
        :: !is_change -> skip
        fi;
        assert(control != NOBODY || mode == stop);  /* A5 */
        d_step { wanted = NOBODY; new_mode = hardware; is_change = false; will_wait = false; has_looked = is_last; is_last = false };
        goto again
    } unless { !is_running };
    atomic { wanted = NOBODY; asked = 0; new_mode = hardware; is_change = false; will_wait = false; is_last = false; n_dead++ };
    atomic { is_running -> n_dead-- };
    goto again
}

/* Time. */
proctype Clock() {
    byte i;
    do
    :: d_step {
        is_running && has_looked ->
        has_looked = false;
        for (i : 0 .. 1) {
            if
            :: silent[i] <= WD -> silent[i]++
            :: else -> skip
            fi
        }
        i = 0;
        if
        :: is_counting && since <= WD -> since++
        :: else -> skip
        fi;
        if
        :: IS_LOST -> n_lost++
        :: is_waiting && !is_handing && (silent[HW] <= WD || silent[PX] <= WD) -> n_lost++
        :: else -> n_lost = 0
        fi;
        assert(n_lost <= 1);  /* A3 */
        if
        :: nempty(request) && !is_handing -> age++
        :: nempty(request) && is_handing -> skip
        :: empty(request) -> age = 0
        fi;
        assert(age <= 1)  /* A4 */
       }
    od
}

/* Operators and fate. A request that is lost is one that is never made. */
proctype World() {
    do
    :: atomic { is_running && empty(request) ->
        age = 0;
        if
        :: request!hardware
        :: request!proxy
        :: request!mirror
        :: request!shadow
        :: request!stop
        fi }
    :: d_step { is_running && n_dead == 0 ->
        /* It dies, and knows nothing any more. */
        is_running = false;
        mode = hardware; control = HW; output_source = HW; silent[HW] = WD + 1; silent[PX] = WD + 1; since = 0; is_counting = false; is_old = false;
        is_waiting = false; lost = HW; lost_mode = hardware; is_handing = false;
        has_looked = false; n_lost = 0; age = 0 }
    :: atomic { !is_running && n_dead == N_THREAD ->
        if
        :: nempty(request) -> request?_
        :: empty(request) -> skip
        fi;
        n_reader = 0; is_writing = false; is_running = true }
    od
}

init {
    atomic {
        run Output();
        run Command();
        run Authority();
        run Clock();
        run World()
    }
}

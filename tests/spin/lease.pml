/* Leases at the gates of a robot's sources, for the model checker Spin: src/gate/gate_machine.c and src/switch/lease_machine.c.
 *
 *     switch --request(role, nonce)--> gate --answer(role, fresh nonce)--> switch        each may be lost, late, or overtaken
 *     switch --command--> gate                                                           looked at, then written at any later time
 *
 * N_SWITCH switches and N_GATE gates (0: hardware, 1: proxy). At any moment a switch is stopped and continued, dies and is started again, changes its
 * mind which source to control; a gate is stopped, or begins anew. Time is counted in ticks, in which nothing need happen. A nonce is the number of
 * ticks for which a lease by it lasts: L when it is given, one less with each tick wherever it is. A switch counts its own lease by the same number;
 * in truth it ends earlier, since the switch counts from before it asked.
 *
 * A gate that runs is heard within S ticks by a switch that runs. Where it is not (a network that is cut for one of two switches), nobody can tell
 * that from a dead gate, and no rule can help.
 *
 * What is asserted:
 *   L1  no two gates take commands as active
 *   L2  no command is taken that was permitted before another switch was granted the lease of that gate
 *   L3  when one switch runs, the others are dead and the gates run, it has control after at most CALM ticks, or has withdrawn
 *
 * Each of NO_FENCE, NO_CONFIRM and RETURN takes out one part and must lead to a violation. QUICK leaves out that gates stop or begin anew.
 */
#ifndef N_SWITCH
#define N_SWITCH 2
#endif
#ifndef N_GATE
#define N_GATE 1
#endif
#ifndef L
#define L 3
#endif
#define S (L + 1)
#define CALM (L + 3)
#define NOBODY N_SWITCH
#define GHOST (N_SWITCH + 1)  /* a switch that died: its lease lasts on */
#define NOWHERE N_GATE

/* Roles. */
#define NONE 0
#define PASSIVE 1
#define ACTIVE 2
/* States of a switch. */
#define DEAD 0
#define WAITING 1
#define OFFICE 2
#define OVER 3
/* Phases of the last request. */
#define IDLE 0
#define ASKED 1
#define ANSWERED 2

typedef Gate {
    byte holder = NOBODY;
    byte role, left;
    bool is_stopped
};
Gate gate[N_GATE];

typedef Lease {  /* of one switch at one gate */
    byte role, left, nonce;   /* granted; for how long; the last nonce */
    byte silent;              /* ticks without an answer, up to S */
    bool is_other;            /* another held it, by the last answer */
    bool is_unconfirmed;      /* a request for the active role may still be under way, or was the last to be answered */
    bool had, is_lost;        /* at the gate: it was granted a lease; and another since */
    bool is_due;
    byte phase, asked;        /* the last request, */
    byte m_nonce, m_left;     /* its nonce, or what the answer brings */
    byte m_role;
    bool m_other, m_lost;
    byte stray, stray_nonce   /* a request that the last one overtook */
};
typedef Switch {
    byte state = DEAD;
    bool is_stopped;
    byte want;       /* the source that it wants to control */
    byte command = NOWHERE;  /* permitted, and on its way */
    bool is_old;     /* another was granted the lease since */
    Lease at[N_GATE]
};
Switch sw[N_SWITCH];
bool is_calm;
byte n_calm;

byte i, k, role, other;
bool may, has_other;

#define HELD(s, g) (sw[s].at[g].role != NONE && sw[s].at[g].left > 0)
#define SILENT(s, g) (sw[s].at[g].silent >= S)
#define SETTLED(s, g) (HELD(s, g) || SILENT(s, g))
#define TAKES(g) (gate[g].holder != NOBODY && gate[g].role == ACTIVE && gate[g].left > 0)
#define PERMITTED(s) (sw[s].state == OFFICE && HELD(s, sw[s].want) && sw[s].at[sw[s].want].role == ACTIVE && sw[s].at[sw[s].want].asked == ACTIVE)
#define RUNS(s) (sw[s].state != DEAD && !sw[s].is_stopped)

inline check() {
#if N_GATE == 2
    assert(!(TAKES(0) && TAKES(1)))  /* L1 */
#else
    skip
#endif
}

inline forget(s) {
    for (i : 0 .. N_GATE - 1) {
        sw[s].at[i].role = NONE; sw[s].at[i].left = 0; sw[s].at[i].nonce = 0; sw[s].at[i].silent = 0; sw[s].at[i].is_other = false;
        sw[s].at[i].is_unconfirmed = false; sw[s].at[i].had = false; sw[s].at[i].is_lost = false; sw[s].at[i].is_due = false;
        sw[s].at[i].phase = IDLE; sw[s].at[i].asked = NONE; sw[s].at[i].m_nonce = 0; sw[s].at[i].m_left = 0; sw[s].at[i].m_role = NONE;
        sw[s].at[i].m_other = false; sw[s].at[i].m_lost = false; sw[s].at[i].stray = NONE; sw[s].at[i].stray_nonce = 0;
        if :: gate[i].holder == s -> gate[i].holder = GHOST; gate[i].role = PASSIVE :: else -> skip fi
    }
    i = 0;
    sw[s].is_stopped = false; sw[s].command = NOWHERE; sw[s].is_old = false; sw[s].want = 0
}

/* The gate decides about a request of s. */
inline decide(s, g, r, nonce) {
    if
    :: nonce == 0 -> skip
    :: nonce > 0 && gate[g].holder == s && r == NONE -> gate[g].holder = NOBODY; gate[g].role = NONE; gate[g].left = 0
    :: nonce > 0 && gate[g].holder == s && r != NONE ->
        gate[g].role = r;
        gate[g].left = (nonce > gate[g].left -> nonce : gate[g].left)
    #ifdef RETURN
    :: nonce > 0 && gate[g].holder == NOBODY && r != NONE ->
#else
    :: nonce > 0 && gate[g].holder == NOBODY && r != NONE && !sw[s].at[g].is_lost ->  /* by the term that the request names */
#endif
        gate[g].holder = s; gate[g].role = r; gate[g].left = nonce; sw[s].at[g].had = true;
        for (k : 0 .. N_SWITCH - 1) {
            if
            :: k != s ->
                if :: sw[k].at[g].had -> sw[k].at[g].is_lost = true :: else -> skip fi;
                if :: sw[k].command == g -> sw[k].is_old = true :: else -> skip fi
            :: else -> skip
            fi
        }
        k = 0
    :: else -> skip
    fi
}

/* What s asks of g now, into `role`. */
inline choose(s, g) {
    role = NONE;
    if
    :: sw[s].state == WAITING ->
        has_other = false;
        may = true;
        for (i : 0 .. N_GATE - 1) {
            if :: sw[s].at[i].is_other -> has_other = true :: else -> skip fi;
            if :: sw[s].at[i].nonce == 0 && !SILENT(s, i) && !HELD(s, i) -> may = false :: else -> skip fi
        }
        i = 0;
        if
        :: !has_other && may && (g == 0 || SETTLED(s, 0)) -> role = PASSIVE
        :: else -> skip
        fi;
        has_other = false; may = false
    :: sw[s].state == OFFICE ->
        if
        :: sw[s].want != g -> role = PASSIVE
        :: sw[s].want == g && HELD(s, g) && sw[s].at[g].role == ACTIVE -> role = ACTIVE
        :: else ->
#if N_GATE == 2
            other = 1 - g;
#ifdef NO_CONFIRM
            role = (HELD(s, other) || SILENT(s, other) -> ACTIVE : PASSIVE);
#else
            role = ((HELD(s, other) && sw[s].at[other].role != ACTIVE && !sw[s].at[other].is_unconfirmed) || SILENT(s, other) -> ACTIVE : PASSIVE);
#endif
            other = 0
#else
            role = ACTIVE
#endif
        fi
    :: else -> skip
    fi
}

/* Comes into office, or withdraws. */
inline step(s) {
    may = true;
    for (i : 0 .. N_GATE - 1) {
        if :: !SETTLED(s, i) -> may = false :: else -> skip fi
    }
    i = 0;
    has_other = sw[s].at[0].is_other;
#ifndef RETURN
    has_other = has_other || sw[s].at[0].m_lost;
#endif
#if N_GATE == 2
    has_other = has_other || (sw[s].at[1].is_other && !HELD(s, 0));
#ifndef RETURN
    has_other = has_other || (sw[s].at[1].m_lost && !HELD(s, 0));
#endif
#endif
    if
    :: sw[s].state == OFFICE && has_other -> sw[s].state = OVER
    :: sw[s].state == WAITING && may -> sw[s].state = OFFICE
    :: else -> skip
    fi;
    may = false; has_other = false
}

proctype Exchange(byte s; byte g) {
    do
    /* a request */
    :: atomic { RUNS(s) ->
        choose(s, g);
        if
        :: sw[s].at[g].phase != ANSWERED && (sw[s].at[g].is_due || role != sw[s].at[g].asked) ->
            if
            :: sw[s].at[g].phase == ASKED && !is_calm && (N_GATE == 2 || sw[s].at[g].asked != NONE) -> sw[s].at[g].stray = sw[s].at[g].asked; sw[s].at[g].stray_nonce = sw[s].at[g].m_nonce
            :: else -> skip
            fi;
            sw[s].at[g].phase = ASKED; sw[s].at[g].asked = role; sw[s].at[g].m_nonce = sw[s].at[g].nonce; sw[s].at[g].is_due = false;
            if :: role == ACTIVE -> sw[s].at[g].is_unconfirmed = true :: else -> skip fi
        :: else -> skip
        fi;
        role = NONE }
    /* it arrives, and is answered */
    :: atomic { sw[s].at[g].phase == ASKED && !gate[g].is_stopped ->
        decide(s, g, sw[s].at[g].asked, sw[s].at[g].m_nonce);
        check();
        sw[s].at[g].stray = NONE; sw[s].at[g].stray_nonce = 0;
        sw[s].at[g].m_other = gate[g].holder != NOBODY && gate[g].holder != s;
        sw[s].at[g].m_role = (gate[g].holder == s -> gate[g].role : NONE);
        sw[s].at[g].m_left = (gate[g].holder == s -> sw[s].at[g].m_nonce : 0);
        sw[s].at[g].m_lost = sw[s].at[g].is_lost;
        sw[s].at[g].m_nonce = L;
        sw[s].at[g].phase = ANSWERED }
    /* the answer arrives */
    :: atomic { RUNS(s) && sw[s].at[g].phase == ANSWERED ->
        sw[s].at[g].role = sw[s].at[g].m_role;
        sw[s].at[g].left = (sw[s].at[g].m_role == NONE -> 0 : (sw[s].at[g].m_left > sw[s].at[g].left -> sw[s].at[g].m_left : sw[s].at[g].left));
        sw[s].at[g].nonce = sw[s].at[g].m_nonce; sw[s].at[g].silent = 0; sw[s].at[g].is_other = sw[s].at[g].m_other;
        if :: sw[s].at[g].asked != ACTIVE -> sw[s].at[g].is_unconfirmed = false :: else -> skip fi;
        sw[s].at[g].phase = IDLE; sw[s].at[g].m_nonce = 0; sw[s].at[g].m_left = 0; sw[s].at[g].m_role = NONE; sw[s].at[g].m_other = false;
        /* who waits has nothing to lose yet */
        if :: sw[s].state == WAITING -> sw[s].at[g].had = (sw[s].at[g].role != NONE); sw[s].at[g].is_lost = false; sw[s].at[g].m_lost = false :: else -> skip fi;
        step(s);
        sw[s].at[g].m_lost = false;
        for (k : 0 .. N_GATE - 1) {
            choose(s, k);
            sw[s].at[k].is_due = sw[s].at[k].is_due || (role != NONE && !(HELD(s, k) && sw[s].at[k].role == role))
        }
        k = 0;
        role = NONE }
    /* one that was overtaken arrives all the same */
    :: atomic { sw[s].at[g].stray != NONE && !gate[g].is_stopped && !is_calm ->
        if
        :: sw[s].at[g].phase == ASKED -> decide(s, g, sw[s].at[g].stray, sw[s].at[g].stray_nonce); check()
        :: else -> skip
        fi;
        sw[s].at[g].stray = NONE; sw[s].at[g].stray_nonce = 0 }
    /* messages are lost */
    :: atomic { sw[s].at[g].phase != IDLE && !is_calm ->
        sw[s].at[g].m_lost = false;
        sw[s].at[g].phase = IDLE; sw[s].at[g].m_nonce = 0; sw[s].at[g].m_left = 0; sw[s].at[g].m_role = NONE; sw[s].at[g].m_other = false;
        sw[s].at[g].is_due = true }
    od
}

proctype Command(byte s) {
    do
    /* a look */
    :: atomic { RUNS(s) && PERMITTED(s) && sw[s].command == NOWHERE -> sw[s].command = sw[s].want; sw[s].is_old = false }
    /* and the write, at any later time */
    :: atomic { sw[s].command != NOWHERE ->
#ifdef NO_FENCE
        assert(!sw[s].is_old);  /* L2 */
#else
        assert(!(TAKES(sw[s].command) && gate[sw[s].command].holder == s && sw[s].is_old));  /* L2 */
#endif
        sw[s].command = NOWHERE; sw[s].is_old = false }
    od
}

proctype Fate(byte s) {
    do
    :: atomic { !is_calm && sw[s].state != DEAD && !sw[s].is_stopped -> sw[s].is_stopped = true }
    :: atomic { sw[s].is_stopped -> sw[s].is_stopped = false }
    :: atomic { !is_calm && sw[s].state != DEAD -> sw[s].state = DEAD; forget(s) }
    :: atomic { !is_calm && sw[s].state == DEAD -> sw[s].state = WAITING }
#if N_GATE == 2
    :: atomic { !is_calm && RUNS(s) -> sw[s].want = 1 - sw[s].want }
#endif
    od
}

proctype Gates(byte g) {
    do
#if N_GATE == 2 && !defined(QUICK)
    :: atomic { !is_calm && !gate[g].is_stopped -> gate[g].is_stopped = true }
    :: atomic { gate[g].is_stopped -> gate[g].is_stopped = false }
#endif
#ifndef QUICK
    :: atomic { !is_calm ->
        /* It begins anew: nothing of before reaches it, and no nonce of before counts. */
        gate[g].holder = NOBODY; gate[g].role = NONE; gate[g].left = 0; gate[g].is_stopped = false;
        for (k : 0 .. N_SWITCH - 1) {
            /* a command reaches its readers only after discovery, in which the switch learns of the new start */
            sw[k].at[g].role = NONE; sw[k].at[g].left = 0; sw[k].at[g].nonce = 0; sw[k].at[g].m_nonce = 0; sw[k].at[g].stray = NONE; sw[k].at[g].stray_nonce = 0; sw[k].at[g].had = false;
            sw[k].at[g].is_lost = false; sw[k].at[g].m_lost = false;
            if :: sw[k].at[g].phase != IDLE -> sw[k].at[g].phase = IDLE; sw[k].at[g].is_due = true :: else -> skip fi;
            sw[k].at[g].m_left = 0; sw[k].at[g].m_role = NONE; sw[k].at[g].m_other = false;
            if :: sw[k].command == g -> sw[k].command = NOWHERE; sw[k].is_old = false :: else -> skip fi
        }
        k = 0 }
#endif
    :: false
    od
}

#define LESS(x) if :: x > 0 -> x-- :: else -> skip fi

/* In the calm the first switch does all that it has to between two ticks. */
#define IS_QUIET(g) (sw[0].at[g].phase == IDLE && !sw[0].at[g].is_due)

proctype Clock() {
    byte g, s;
    do
#if N_GATE == 2
    :: atomic { !is_calm || (IS_QUIET(0) && IS_QUIET(1)) ->
#else
    :: atomic { !is_calm || IS_QUIET(0) ->
#endif
        for (g : 0 .. N_GATE - 1) {
            LESS(gate[g].left);
            if :: gate[g].left == 0 -> gate[g].holder = NOBODY; gate[g].role = NONE :: else -> skip fi;
            for (s : 0 .. N_SWITCH - 1) {
                LESS(sw[s].at[g].left);
                if :: sw[s].at[g].left == 0 -> sw[s].at[g].role = NONE :: else -> skip fi;
                LESS(sw[s].at[g].nonce);
                LESS(sw[s].at[g].m_nonce);
                LESS(sw[s].at[g].m_left);
                LESS(sw[s].at[g].stray_nonce);
                if
                :: RUNS(s) ->
                    sw[s].at[g].is_due = true;
                    /* only a gate that does not run is silent for long */
#if N_GATE == 2
                    if
                    :: sw[s].at[g].silent < S && (gate[g].is_stopped || sw[s].at[g].silent + 1 < S) && sw[s].at[g].phase != ANSWERED -> sw[s].at[g].silent++
                    :: else -> skip
                    fi
#else
                    skip
#endif
                :: else -> skip
                fi
            }
        }
        g = 0; s = 0;
        for (s : 0 .. N_SWITCH - 1) {
            if :: RUNS(s) -> step(s) :: else -> skip fi
        }
        s = 0;
        if
        :: is_calm && !PERMITTED(0) && sw[0].state != OVER -> n_calm++
        :: else -> n_calm = 0
        fi;
        assert(n_calm <= CALM)  /* L3 */ }
    /* the calm begins */
    :: atomic { !is_calm && (sw[0].state == WAITING || sw[0].state == OFFICE) && !sw[0].is_stopped ->
        is_calm = true;
        for (s : 1 .. N_SWITCH - 1) {
            if :: sw[s].state != DEAD -> sw[s].state = DEAD; forget(s) :: else -> skip fi
        }
        s = 0;
        for (g : 0 .. N_GATE - 1) { gate[g].is_stopped = false }
        g = 0 }
    od
}

init {
    byte s, g;
    atomic {
        for (s : 0 .. N_SWITCH - 1) {
#if N_SWITCH > 1
            run Command(s);
#endif
            run Fate(s);
            for (g : 0 .. N_GATE - 1) { run Exchange(s, g) }
        }
        for (g : 0 .. N_GATE - 1) { run Gates(g) }
        s = 0; g = 0;
        run Clock()
    }
}

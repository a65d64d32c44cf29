; The ZeRO stages take less and less memory, and stage 3 takes 1/N of it, up to the unit
;
; Proof share_of_each
; N shares of a state are the state.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const N Int)
(declare-const i Real)
(declare-const p Real)
(declare-const g Real)
(declare-const a Real)
(declare-const u Real)
(assert (and (>= N 1) (= (* i (to_real N)) 1.0) (> p 0.0) (> g 0.0) (> a 0.0) (>= u 0.0)))
(define-fun data_parallel () Real (+ p g a))
(define-fun zero1 () Real (+ p g (* i a)))
(define-fun zero2 () Real (+ p (* i g) (* i a)))
(define-fun zero3 () Real (+ (* i p) (* i g) (* i a)))
(declare-const b Real)
(declare-const share Real)
(assert (= share (* i b)))
(assert (distinct (* (to_real N) share) b))
(check-sat)

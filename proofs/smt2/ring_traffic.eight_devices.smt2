; Ring collectives send (N-1)/N of the tensor, an all-reduce twice that
;
; Witness eight_devices
; N = 8, s = 8: 7 for a reduce-scatter, 14 for an all-reduce.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-fun sent (Int) Real)
(declare-const N Int)
(declare-const t Int)
(declare-const s Real)
(declare-const chunk Real)
(assert (and (>= N 1) (>= t 0) (> s 0.0) (= (* (to_real N) chunk) s)))
(assert (= (sent 0) 0.0))
(assert (= (sent (+ t 1)) (+ (sent t) chunk)))
(assert (and (= N 8) (= s 8.0) (= chunk 1.0)))
(assert (= (sent 7) (* 7.0 chunk)))
(assert (= (* 2.0 (sent 7)) 14.0))
(check-sat)

; Ring collectives send (N-1)/N of the tensor, an all-reduce twice that
;
; Proof below_the_limit
; Less than s, and s - chunk exactly.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun sent (Int) Real)
(declare-const N Int)
(declare-const t Int)
(declare-const s Real)
(declare-const chunk Real)
(assert (and (>= N 1) (>= t 0) (> s 0.0) (= (* (to_real N) chunk) s)))
(assert (= (sent 0) 0.0))
(assert (= (sent (+ t 1)) (+ (sent t) chunk)))
(assert (= (sent (- N 1)) (* (to_real (- N 1)) chunk)))
(assert (> chunk 0.0))
(assert (not (and (< (sent (- N 1)) s) (= (sent (- N 1)) (- s chunk)))))
(check-sat)

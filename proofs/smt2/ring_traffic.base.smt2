; Ring collectives send (N-1)/N of the tensor, an all-reduce twice that
;
; Proof base
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
(assert (distinct (sent 0) (* 0.0 chunk)))
(check-sat)

; Pipeline and data parallelism together are right, tied embeddings included
;
; Proof base
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun first (Int) Real)
(declare-fun last (Int) Real)
(declare-fun sum_first (Int) Real)
(declare-fun sum_last (Int) Real)
(declare-fun sum_both (Int) Real)
(declare-const n Int)
(declare-const D Int)
(declare-const P Int)
(assert (and (>= n 0) (>= D 1) (>= P 1)))
(assert (and (= (sum_first 0) 0.0) (= (sum_last 0) 0.0) (= (sum_both 0) 0.0)))
(assert (= (sum_first (+ n 1)) (+ (sum_first n) (first n))))
(assert (= (sum_last (+ n 1)) (+ (sum_last n) (last n))))
(assert (= (sum_both (+ n 1)) (+ (sum_both n) (+ (first n) (last n)))))
(assert (distinct (sum_both 0) (+ (sum_first 0) (sum_last 0))))
(check-sat)

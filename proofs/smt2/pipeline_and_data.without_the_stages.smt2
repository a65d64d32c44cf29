; Pipeline and data parallelism together are right, tied embeddings included
;
; Witness without_the_stages
; D = 1, P = 2: the first stage applies 2, where one device has 2 + 3.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
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
(assert (and (= D 1) (= P 2) (= n 0) (= (first 0) 2.0) (= (last 0) 3.0)))
(assert (and (= (sum_first 1) 2.0) (= (sum_both 1) 5.0)))
(check-sat)

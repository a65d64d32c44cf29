; Skipping a step is one decision when it is taken on a copy
;
; Witness shares_decide_apart
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-sort Value 0)
(declare-fun overflow (Value) Bool)
(declare-fun seen (Int) Value)
(declare-fun combined (Int) Bool)
(declare-const N Int)
(declare-const n Int)
(declare-const x Int)
(declare-const y Int)
(assert (and (>= N 1) (<= 0 x) (< x N) (<= 0 y) (< y N) (>= n 0)))
(assert (= (combined 0) false))
(assert (= (combined (+ n 1)) (or (combined n) (overflow (seen n)))))
(declare-const large Value)
(declare-const small Value)
(assert (and (= N 2) (= x 0) (= y 1) (= (seen 0) large) (= (seen 1) small)))
(assert (and (overflow large) (not (overflow small))))
(assert (distinct (overflow (seen x)) (overflow (seen y))))
(check-sat)

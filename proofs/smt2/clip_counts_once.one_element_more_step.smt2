; The clip norm is right when shards are summed over their axis and copies are not
;
; Proof one_element_more_step
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun q (Int) Real)
(declare-fun owner (Int) Int)
(declare-fun part (Int Int) Real)
(declare-fun devices (Int Int) Real)
(declare-fun whole (Int) Real)
(declare-const N Int)
(declare-const n Int)
(declare-const e Int)
(assert (and (>= N 1) (>= n 0) (>= e 0) (<= 0 (owner e)) (< (owner e) N) (>= (q e) 0.0)))
(assert (= (part n (+ e 1)) (+ (part n e) (ite (= (owner e) n) (q e) 0.0))))
(assert (= (devices (+ n 1) e) (+ (devices n e) (part n e))))
(assert (= (devices (+ n 1) (+ e 1)) (+ (devices n (+ e 1)) (part n (+ e 1)))))
(assert (and (= (devices 0 e) 0.0) (= (devices 0 (+ e 1)) 0.0)))
(assert (= (whole (+ e 1)) (+ (whole e) (q e))))
(assert (= (whole 0) 0.0))
(define-fun added ((m Int)) Bool
  (= (devices m (+ e 1)) (+ (devices m e) (ite (< (owner e) m) (q e) 0.0))))
(assert (added n))
(assert (not (added (+ n 1))))
(check-sat)

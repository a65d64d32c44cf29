; A loop that multiplies its buffer by c is right for every M exactly when c = 1
;
; Proof only_one
; Any c that is right at M = 2, for the gradients 1 and 0, is 1.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun g (Int) Real)
(declare-fun buffer (Int) Real)
(declare-fun sum (Int) Real)
(declare-const c Real)
(declare-const m Int)
(assert (>= m 0))
(assert (and (= (buffer 0) 0.0) (= (sum 0) 0.0)))
(define-fun turn ((i Int)) Bool (and
  (= (buffer (+ i 1)) (+ (* c (buffer i)) (g (+ i 1))))
  (= (sum (+ i 1)) (+ (sum i) (g (+ i 1))))))
(assert (and (turn 0) (turn 1)))
(assert (and (= (g 1) 1.0) (= (g 2) 0.0)))
(assert (= (buffer 2) (sum 2)))
(assert (distinct c 1.0))
(check-sat)

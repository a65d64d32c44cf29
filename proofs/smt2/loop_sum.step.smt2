; A loop that multiplies its buffer by c is right for every M exactly when c = 1
;
; Proof step
; c = 1 is right for every M.
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
(assert (= c 1.0))
(assert (turn m))
(assert (= (buffer m) (sum m)))
(assert (distinct (buffer (+ m 1)) (sum (+ m 1))))
(check-sat)

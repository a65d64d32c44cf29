; Optimizers that see a matrix may not be applied to its shards
;
; Witness rows
; The factors, and the two results for the first element of row 0: 1 from the matrix, 4/5 from the row alone.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const q11 Real)
(declare-const q12 Real)
(declare-const q21 Real)
(declare-const q22 Real)
(declare-const p11 Real)
(declare-const p12 Real)
(declare-const p22 Real)
(declare-const norm Real)
(define-fun orthogonal () Bool (and
  (= (+ (* q11 q11) (* q21 q21)) 1.0)
  (= (+ (* q12 q12) (* q22 q22)) 1.0)
  (= (+ (* q11 q12) (* q21 q22)) 0.0)))
(define-fun positive () Bool (and (> p11 0.0) (> (- (* p11 p22) (* p12 p12)) 0.0)))
(define-fun gradient_is_QP () Bool (and
  (= (+ (* q11 p11) (* q12 p12)) 4.0) (= (+ (* q11 p12) (* q12 p22)) 3.0)
  (= (+ (* q21 p11) (* q22 p12)) 3.0) (= (+ (* q21 p12) (* q22 p22)) 4.0)))
(define-fun norm_of_row () Bool (and (> norm 0.0) (= (* norm norm) (+ (* 4.0 4.0) (* 3.0 3.0)))))
(assert (and (= q11 1.0) (= q12 0.0) (= q21 0.0) (= q22 1.0) (= p11 4.0) (= p12 3.0) (= p22 4.0) (= norm 5.0)))
(assert (and orthogonal positive gradient_is_QP norm_of_row))
(assert (distinct q11 (/ 4.0 norm)))
(check-sat)

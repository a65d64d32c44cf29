; No side condition of composition can be dropped
;
; Witness nested_in_two_orders
; Gradients of four elements nest a outside b, optimizer state b outside a. Element 1 = 2*0 + 1 has its gradient on (a, b) =
; (0, 1) and its optimizer state on (1, 0): nobody can update it.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const x Real)
(declare-const y Real)
(define-fun sum ((a Real) (b Real)) Real (+ a b))
(define-fun mean ((a Real) (b Real)) Real (/ (+ a b) 2.0))
(declare-const ga Int)
(declare-const gb Int)
(declare-const oa Int)
(declare-const ob Int)
(assert (and (<= 0 ga 1) (<= 0 gb 1) (<= 0 oa 1) (<= 0 ob 1)))
(assert (and (= 1 (+ (* 2 ga) gb)) (= 1 (+ (* 2 ob) oa))))
(assert (not (and (= ga oa) (= gb ob))))
(check-sat)

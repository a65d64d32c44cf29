; No side condition of composition can be dropped
;
; Proof in_the_other_order
; Reduced over the stages first, whole buffers are added element by element, and any cut of the sum is a cut of the right value.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const x Real)
(declare-const y Real)
(define-fun sum ((a Real) (b Real)) Real (+ a b))
(define-fun mean ((a Real) (b Real)) Real (/ (+ a b) 2.0))
(declare-sort Element 0)
(declare-fun first (Element) Real)
(declare-fun last (Element) Real)
(declare-fun reduced (Element) Real)
(declare-fun place (Int) Element)
(declare-const j Int)
(assert (= (reduced (place j)) (sum (first (place j)) (last (place j)))))
(assert (distinct (reduced (place j)) (+ (first (place j)) (last (place j)))))
(check-sat)

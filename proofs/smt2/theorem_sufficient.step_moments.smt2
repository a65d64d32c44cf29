; Gradient integrity and state consistency together make every step right
;
; Proof step_moments
; The same for the optimizer state of an arbitrary updater.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-sort Device 0)
(declare-sort Element 0)
(declare-sort Value 0)
(declare-sort Moment 0)
(declare-fun U (Value Moment Value) Value)
(declare-fun W (Value Moment Value) Moment)
(declare-fun holds (Device Element) Bool)
(declare-fun updates (Device Element) Bool)
(declare-fun source (Device Element) Device)
(declare-fun theta (Device Element) Value)
(declare-fun theta2 (Device Element) Value)
(declare-fun omega (Device Element) Moment)
(declare-fun omega2 (Device Element) Moment)
(declare-fun fed (Device Element) Value)
(declare-fun single_theta (Element) Value)
(declare-fun single_theta2 (Element) Value)
(declare-fun single_omega (Element) Moment)
(declare-fun single_omega2 (Element) Moment)
(declare-fun single_gradient (Element) Value)
(define-fun right_before () Bool (and
  (forall ((x Device) (e Element)) (=> (holds x e) (= (theta x e) (single_theta e))))
  (forall ((u Device) (e Element)) (=> (updates u e) (= (omega u e) (single_omega e))))))
(define-fun GI () Bool
  (forall ((u Device) (e Element)) (=> (and right_before (updates u e)) (= (fed u e) (single_gradient e)))))
(define-fun every_copy_has_a_source () Bool
  (forall ((x Device) (e Element)) (=> (holds x e) (updates (source x e) e))))
(define-fun updaters_hold () Bool
  (forall ((u Device) (e Element)) (=> (updates u e) (holds u e))))
(define-fun updated ((u Device) (e Element)) Value (U (theta u e) (omega u e) (fed u e)))
(define-fun moments_step () Bool
  (forall ((u Device) (e Element)) (=> (updates u e) (= (omega2 u e) (W (theta u e) (omega u e) (fed u e))))))
(define-fun copies_receive () Bool
  (forall ((x Device) (e Element)) (=> (holds x e) (= (theta2 x e) (updated (source x e) e)))))
(define-fun SC () Bool (and every_copy_has_a_source updaters_hold moments_step copies_receive))
(define-fun single_step () Bool (forall ((e Element)) (and
  (= (single_theta2 e) (U (single_theta e) (single_omega e) (single_gradient e)))
  (= (single_omega2 e) (W (single_theta e) (single_omega e) (single_gradient e))))))
(declare-const u Device)
(declare-const e Element)
(assert (and right_before GI SC single_step))
(assert (updates u e))
(assert (distinct (omega2 u e) (single_omega2 e)))
(check-sat)

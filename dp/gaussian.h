/* dp/gaussian.h - the analytic Gaussian mechanism (Balle and Wang 2018, Theorem 8).
 *
 * For noise of deviation sigma on a query of L2 sensitivity s, with r = s / sigma:
 *   delta(eps) = Phi(r/2 - eps/r) - e^eps Phi(-r/2 - eps/r),
 * exact, for every eps >= 0.  Used for released rows and matrices (methods 3.6). */
#ifndef DP_GAUSSIAN_H
#define DP_GAUSSIAN_H

double dp_gaussian_delta(double sensitivity, double sigma, double epsilon);
/* Smallest epsilon >= 0 at this delta. */
double dp_gaussian_epsilon(double sensitivity, double sigma, double delta);
/* Smallest sigma that gives (epsilon, delta). */
double dp_gaussian_sigma(double sensitivity, double epsilon, double delta);
/* sensitivity sqrt(2 ln(1.25/delta)) / epsilon, proved for epsilon < 1 only: for comparison. */
double dp_gaussian_sigma_classic(double sensitivity, double epsilon, double delta);

#endif

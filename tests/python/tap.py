"""unittest with TAP as its output."""
import sys
import unittest


class Tap(unittest.TestResult):
    """One line a test."""
    count = 0

    def line(self, test, fault=None):
        type(self).count += 1
        print(f"{'not ok' if fault else 'ok'} {self.count} - {test.id().split('.', 1)[1]}", flush=True)
        if fault:
            print("\n".join("# " + x for x in self._exc_info_to_string(fault, test).splitlines()), flush=True)
            self.failed.add(test)

    def __init__(self, *args):
        super().__init__(*args)
        self.failed = set()

    def addSuccess(self, test):
        if test not in self.failed:
            self.line(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.line(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self.line(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            print(f"# in {subtest}")
            self.line(test, err)


def main():
    """Runs the tests of the program that calls it; its exit status says whether all passed."""
    outcome = Tap()
    unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]).run(outcome)
    print(f"1..{Tap.count}")
    sys.exit(not outcome.wasSuccessful())

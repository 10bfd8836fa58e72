"""`python -m caplens`"""

from caplens.cli.main import main

main()
